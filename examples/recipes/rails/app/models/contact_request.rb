# What a visitor asks for: the website's own record. Its rules are those of the API, so that no one is thanked for what it refuses.
class ContactRequest < ApplicationRecord
  # Of the page that it was sent from.
  attr_accessor :form_key

  validates :name, presence: true, length: { maximum: 160 }
  validates :email, length: { maximum: 254 }, format: /\A[^@[:space:][:cntrl:]\uFEFF]+@[^@[:space:][:cntrl:]\uFEFF]+\z/
  validates :message, length: { maximum: 2000 }
  validates :name, :message, format: { without: /\0/ }

  # Phones add a space to what they complete.
  def email=(text)
    super(text&.strip)
  end

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
    { contact: { type: "email", value: email }, displayName: name, note: message.presence }.compact
  end

  # As the clients derive it (/docs/clients#the-key-of-a-form), from members in alphabetical order. With the hour, because a cache may show
  # the same page to other visits.
  def idempotency_key
    bytes = Digest::SHA256.digest([form_key, Time.current.to_i / 3600, JSON.generate(as_capture)].join("\0"))
    bytes.setbyte(6, bytes.getbyte(6) & 0x0f | 0x80)
    bytes.setbyte(8, bytes.getbyte(8) & 0x3f | 0x80)
    bytes.unpack("H8H4H4H4H12").join("-")
  end
end
