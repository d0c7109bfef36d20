# What a visitor asks for: the website's own record. Its rules are those of the API, so that no one is thanked for what it refuses.
class ContactRequest < ApplicationRecord
  # Of the page that it was sent from.
  attr_accessor :form_key

  validates :name, presence: true, length: { maximum: 160 }
  validates :email, length: { maximum: 254 }, format: /\A[^@[:space:][:cntrl:]\uFEFF]+@[^@[:space:][:cntrl:]\uFEFF]+\z/
  validates :message, length: { maximum: 2000 }
  validates :name, :message, format: { without: /\0/ }

  # A browser counts a line break as one character, and sends two.
  def message=(text)
    super(text&.gsub(/\r\n?/, "\n"))
  end

  # Stores it, and the lead that is to be sent: both, or neither. The same page with the same data is one lead, also when it is sent twice.
  def save_with_lead
    transaction { save && LeadToSend.create!(capture: as_capture, idempotency_key: idempotency_key) }
  rescue ActiveRecord::RecordNotUnique
    true
  end

  private

  def as_capture
    { displayName: name, contact: { type: "email", value: email }, note: message.presence }.compact
  end

  # With the hour, because a cache may show the same page to other visits.
  def idempotency_key
    visit = [form_key, as_capture, Time.current.utc.strftime("%F %H")]
    Digest::UUID.uuid_v5(Digest::UUID::DNS_NAMESPACE, visit.to_json)
  end
end
