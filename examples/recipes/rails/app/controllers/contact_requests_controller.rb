class ContactRequestsController < ApplicationController
  # Anybody may send this form, so a forged request gains nothing. With a token, a visitor whose cookie is gone, or whose page came from a
  # cache, would lose the text.
  self.allow_forgery_protection = false
  # Rails would refuse the whole form for one byte that is not UTF-8.
  skip_parameter_encoding :create

  def new
    @contact_request = ContactRequest.new(form_key: SecureRandom.uuid)
  end

  # The visitor is thanked once the lead is stored, and does not wait until it is sent.
  def create
    typed = params.require(:contact_request).permit(:form_key, :name, :email, :message)
    @contact_request = ContactRequest.new(typed.transform_values { |text| text.to_s.dup.force_encoding("UTF-8").scrub })
    return render :new, status: 422 unless @contact_request.save_with_lead

    redirect_to thanks_path, status: :see_other
  end

  def thanks
  end
end
