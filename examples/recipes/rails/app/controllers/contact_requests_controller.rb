class ContactRequestsController < ApplicationController
  def new
    @contact_request = ContactRequest.new
  end

  # The visitor is thanked once it is stored; sending it is not for them to wait for.
  def create
    @contact_request = ContactRequest.new(params.require(:contact_request).permit(:name, :email, :message))
    return render :new, status: :unprocessable_entity unless @contact_request.save_with_lead

    redirect_to thanks_path, status: :see_other
  end

  def thanks
  end
end
