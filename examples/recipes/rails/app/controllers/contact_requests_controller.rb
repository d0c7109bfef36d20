class ContactRequestsController < ApplicationController
  # Anybody may send this form, so a forged request can do no more. A token would lose what a visitor wrote whose cookie is gone, or whose page
  # came from a cache.
  self.allow_forgery_protection = false
  # Rails would refuse the whole form for one byte that is not UTF-8.
  skip_parameter_encoding :create

  def new
    @contact_request = ContactRequest.new(form_key: SecureRandom.uuid)
  end

  # The visitor is thanked once it is stored; sending it is not for them to wait for.
  def create
    typed = params.require(:contact_request).permit(:form_key, :name, :email, :message)
    @contact_request = ContactRequest.new(typed.transform_values { |text| text.to_s.dup.force_encoding("UTF-8").scrub })
    return render :new, status: 422 unless @contact_request.save_with_lead

    redirect_to thanks_path, status: :see_other
  end

  def thanks
  end
end
