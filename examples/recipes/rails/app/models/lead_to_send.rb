# A lead that has to arrive. It is stored in the transaction of what it comes with, and sent by SendLeadJob until there is a certain
# outcome, always with the same key and the same data: so there is one lead, whatever stops in between.
class LeadToSend < ApplicationRecord
  self.table_name = "leads_to_send"

  # `refused` needs a person: repeating does not change it.
  enum state: %w[waiting delivered open_already refused].index_with(&:itself)

  attribute :idempotency_key, default: -> { SecureRandom.uuid }

  # Not before: what is not committed, a job does not find.
  after_create_commit { SendLeadJob.perform_later(self) }

  # Has those sent whose jobs got lost, as a queue in memory loses them with its process. Twice is no harm.
  def self.resume(not_touched_since: 5.minutes.ago)
    waiting.where("updated_at <= ?", not_touched_since).find_each { |lead| SendLeadJob.perform_later(lead) }
  end

  # A person has removed the reason for which it was refused.
  def send_again
    update!(state: "waiting", reason: nil)
    SendLeadJob.perform_later(self)
  end

  # There is a certain outcome. What was captured is not needed any more, unless a person has it sent again.
  def settle(state, reason: nil, lead_id: nil)
    update!(state: state, reason: reason, lead_id: lead_id, capture: state == "refused" ? capture : nil)
  end
end
