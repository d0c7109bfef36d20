class ContactRequestsController < ApplicationController
  # Anybody may send this form, so a forged request can do no more. A token would lose what a visitor wrote whose cookie is gone, or whose page
  # came from a cache.
  self.allow_forgery_protection = false

  def new
    @contact_request = ContactRequest.new(form_key: SecureRandom.uuid)
  end

  # The visitor is thanked once it is stored; sending it is not for them to wait for.
  def create
    @contact_request = ContactRequest.new(params.require(:contact_request).permit(:form_key, :name, :email, :message))
    return render :new, status: 422 unless @contact_request.save_with_lead

    redirect_to thanks_path, status: :see_other
  end

  def thanks
  end
end
