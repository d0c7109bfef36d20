# A lead to send. It is stored in one transaction with the website's record, and sent until the outcome is certain, always with the same key
# and data. So it becomes one lead, whatever stops in between. Only its row says what to do next.
class LeadToSend < ApplicationRecord
  self.table_name = "leads_to_send"

  LEASE = 5.minutes
  MAX_BACK_OFF_SECONDS = 60
  # Every wait is shorter. A time that is further away was written while a clock was ahead, and counts as passed.
  CLOCK_WAS_AHEAD = 25.hours

  states = %w[waiting delivered already_open refused discarded].index_with(&:itself)
  # Rails 6 knows only the second form, and Rails 8 only the first one.
  ActiveRecord::VERSION::MAJOR >= 7 ? enum(:state, states) : enum(state: states)

  # MariaDB has no type of its own for JSON.
  attribute :capture, :json
  # The default is for a lead that comes without a key, for example from the website's own code.
  attribute :idempotency_key, default: -> { SecureRandom.uuid }
  attribute :next_attempt_at, default: -> { Time.current }

  scope :due, -> { waiting.where("next_attempt_at <= ? OR next_attempt_at > ?", Time.current, CLOCK_WAS_AHEAD.from_now) }

  # Leads that need attention still have their data. They are refused, or they wait: until somebody corrects something, for more than a day, or
  # because a clock was ahead. Or the contact had a lead already, and the studio may lack the new message.
  scope :in_need, lambda {
    needs = "state <> 'waiting' OR needs_somebody OR created_at < ? OR created_at > ?"
    where.not(capture: nil).where(needs, 1.day.ago, 1.day.from_now).order(:id)
  }

  def self.client
    LeadIntake.new(ENV["LEAD_INTAKE_URL"], ENV["LEAD_INTAKE_KEY"])
  end

  # Makes one pass: sends due leads until one has to wait, because its cause may affect all. The next pass begins with the others.
  def self.deliver(client = self.client)
    return if waiting.exists?(paused_until: Time.current..CLOCK_WAS_AHEAD.from_now)

    due.order(:attempts, :next_attempt_at).limit(100).each do |lead|
      next unless lead.take_up

      outcome = client.create(lead.capture, lead.idempotency_key)
      lead.note(outcome)
      break if outcome.state == "waiting"
    end
  end

  # Leases the lead, and returns whether it was due. Other passes then skip it. If this one is killed, it is due again after the lease.
  def take_up
    due = self.class.due.where(id: id)
    # Somebody may discard it before it is read.
    due.update_all(["next_attempt_at = ?, attempts = attempts + 1", LEASE.from_now]) == 1 && reload.waiting?
  end

  def note(outcome)
    reason = outcome.reason&.truncate(255)
    case outcome.state
    when "waiting" then wait(outcome, reason)
    when "refused" then record(state: "refused", reason: reason)
    else
      replayed = outcome.replayed && attempts == 1
      reason = "the service responded with an earlier lead, not this one" if replayed
      # Perhaps nobody has the visitor's message: a setting of the studio decides whether it keeps such messages.
      kept = replayed || outcome.state == "already_open" && capture["note"]
      record(state: outcome.state, reason: reason, lead_id: outcome.lead_id, paused_until: nil, capture: kept ? capture : nil)
    end
  end

  # Makes the lead due again, after a person has removed the reason of its failure. Returns false, and changes nothing, if the service has the
  # lead or its data is erased.
  def send_again
    # An attempt without an answer may have created the lead. MySQL assigns from left to right, so this comes before the state.
    attempts = Arel.sql("CASE WHEN attempts > 1 OR (attempts = 1 AND state = 'waiting') THEN 1 ELSE 0 END")
    change(
      with_data.where(state: %w[waiting refused]),
      attempts: attempts, state: "waiting", reason: nil, needs_somebody: false, next_attempt_at: Time.current, paused_until: nil, capture: capture
    )
  end

  # Erases the visitor's data, after a person has read it. Returns whether it was there.
  def discard
    state = Arel.sql("CASE WHEN state IN ('waiting', 'refused') THEN 'discarded' ELSE state END")
    change(with_data, state: state, capture: nil)
  end

  private

  def with_data
    self.class.where(id: id).where.not(capture: nil)
  end

  # Changes the row in one statement with its condition, because others may change it at the same time. Returns whether it was changed.
  def change(row, values)
    row.update_all(values.merge(updated_at: Time.current)) == 1
  end

  # Records the outcome of an attempt, unless a person or another pass has changed the row since it was leased.
  def record(values)
    change(self.class.waiting.where(id: id, attempts: attempts, next_attempt_at: next_attempt_at), values)
  end

  # Postpones the lead: longer each time, and never less than Retry-After.
  def wait(outcome, reason)
    back_off = outcome.needs_somebody ? MAX_BACK_OFF_SECONDS : [2**[attempts - 1, 10].min, MAX_BACK_OFF_SECONDS].min
    later = [back_off * (0.75 + rand / 2), [outcome.retry_after.to_i, 86_400].min].max.seconds.from_now
    paused_until = later if outcome.needs_somebody || outcome.retry_after
    # These attempts wrote nothing, and the lead did not cause their failure.
    attempted = outcome.needs_somebody || reason.start_with?("429") ? attempts - 1 : attempts
    record(
      reason: reason, needs_somebody: outcome.needs_somebody, next_attempt_at: later, paused_until: paused_until, attempts: attempted
    )
  end
end
