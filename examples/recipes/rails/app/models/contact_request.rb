# The website's own record of an enquiry. It has the rules of the API, so that nobody is thanked for an enquiry that the API refuses.
class ContactRequest < ApplicationRecord
  # The random text of the page from which it was sent.
  attr_accessor :form_key

  validates :name, presence: true, length: { maximum: 160 }
  validates :email, length: { maximum: 254 }, format: /\A[^@[:space:][:cntrl:]\uFEFF]+@[^@[:space:][:cntrl:]\uFEFF]+\z/
  validates :message, length: { maximum: 2000 }
  validates :name, :message, format: { without: /\0/ }

  # Phones add a space to completed text.
  def email=(text)
    super(text&.strip)
  end

  # A browser counts a line break as one character, and sends two.
  def message=(text)
    super(text&.gsub(/\r\n?/, "\n"))
  end

  # Stores the enquiry and the lead to send: both, or neither. The same page with the same data is one lead, even when it is sent twice.
  def save_with_lead
    transaction { save && LeadToSend.create!(capture: as_capture, idempotency_key: idempotency_key) }
  rescue ActiveRecord::RecordNotUnique
    true
  end

  private

  def as_capture
    { contact: { type: "email", value: email }, displayName: name, note: message.presence }.compact
  end

  # Derives the key as the clients do (/docs/clients#the-key-of-a-form), from members in alphabetical order. It depends on the hour, because
  # a cache may show the same page to other visits.
  def idempotency_key
    bytes = Digest::SHA256.digest([form_key, Time.current.to_i / 3600, JSON.generate(as_capture)].join("\0"))
    bytes.setbyte(6, bytes.getbyte(6) & 0x0f | 0x80)
    bytes.setbyte(8, bytes.getbyte(8) & 0x3f | 0x80)
    bytes.unpack("H8H4H4H4H12").join("-")
  end
end
