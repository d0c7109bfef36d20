# What a visitor asks for: the website's own record.
class ContactRequest < ApplicationRecord
  validates :name, presence: true, length: { maximum: 160 }
  validates :email, presence: true, length: { maximum: 254 }, format: /\A[^@\s]+@[^@\s]+\z/
  validates :message, length: { maximum: 2000 }

  # Stores it, and the lead that is to be sent: both, or neither.
  def save_with_lead
    transaction { save && LeadToSend.create!(capture: as_capture) }
  end

  private

  def as_capture
    { displayName: name, contact: { type: "email", value: email }, note: message.presence }.compact
  end
end
