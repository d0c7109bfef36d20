# A lead that has to arrive. It is stored in the transaction of what it comes with, and sent until there is a certain outcome, always with
# the same key and the same data: so there is one lead, whatever stops in between. What is to be done next stands in its row alone.
class LeadToSend < ApplicationRecord
  self.table_name = "leads_to_send"

  LEASE = 5.minutes
  MAX_BACK_OFF_SECONDS = 60
  # No wait is so long: a time that is further away was written while a clock was ahead, and has come.
  CLOCK_WAS_AHEAD = 25.hours

  states = %w[waiting delivered already_open refused discarded].index_with(&:itself)
  # Rails 6 takes the second form alone, and Rails 8 the first one alone.
  ActiveRecord::VERSION::MAJOR >= 7 ? enum(:state, states) : enum(state: states)

  # MariaDB has no type of its own for JSON.
  attribute :capture, :json
  # Of a lead that comes with none, such as one of a website's own code.
  attribute :idempotency_key, default: -> { SecureRandom.uuid }
  attribute :next_attempt_at, default: -> { Time.current }

  scope :due, -> { waiting.where("next_attempt_at <= ? OR next_attempt_at > ?", Time.current, CLOCK_WAS_AHEAD.from_now) }

  # The data of a lead is kept until somebody has it. So these are the leads that are refused, or wait until somebody corrects something, or
  # for a day, or since a clock was ahead; and the messages that the studio may not have, because the lead was there already.
  scope :in_need, lambda {
    needs = "state <> 'waiting' OR needs_somebody OR created_at < ? OR created_at > ?"
    where.not(capture: nil).where(needs, 1.day.ago, 1.day.from_now).order(:id)
  }

  def self.client
    LeadIntake.new(ENV["LEAD_INTAKE_URL"], ENV["LEAD_INTAKE_KEY"])
  end

  # Makes one pass: sends what is due, until a lead has to wait. Its cause may be that of all; the next pass begins with the others.
  def self.deliver(client = self.client)
    return if waiting.exists?(paused_until: Time.current..CLOCK_WAS_AHEAD.from_now)

    due.order(:attempts, :next_attempt_at).limit(100).each do |lead|
      next unless lead.take_up

      lead.note(client.create(lead.capture, lead.idempotency_key))
      break if lead.waiting?
    end
  end

  # Whether it was due. Any other pass leaves it alone then; if this one is killed, it is due again after the lease.
  def take_up
    due = self.class.due.where(id: id)
    due.update_all(["next_attempt_at = ?, attempts = attempts + 1", LEASE.from_now]) == 1 && reload
  end

  def note(outcome)
    reason = outcome.reason&.truncate(255)
    case outcome.state
    when "waiting" then wait(outcome, reason)
    when "refused" then update!(state: "refused", reason: reason)
    else
      reason = "an earlier lead of a visitor, not this one's" if outcome.replayed && attempts == 1
      # Perhaps no one has what the visitor wrote: whether the studio keeps it is a setting of the studio.
      kept = reason && capture["note"] ? capture : nil
      update!(state: outcome.state, reason: reason, lead_id: outcome.lead_id, capture: kept, paused_until: nil)
    end
  end

  # A person has removed the reason for which it was not delivered.
  def send_again
    raise ArgumentError, "its data is erased" unless capture

    update!(state: "waiting", reason: nil, needs_somebody: false, next_attempt_at: Time.current, paused_until: nil)
  end

  # A person has read it: what the visitor wrote is erased.
  def discard
    update!(state: waiting? || refused? ? "discarded" : state, capture: nil)
  end

  private

  # Later each time, and never sooner than is asked for.
  def wait(outcome, reason)
    back_off = outcome.needs_somebody ? MAX_BACK_OFF_SECONDS : [2**[attempts - 1, 10].min, MAX_BACK_OFF_SECONDS].min
    later = [back_off * (0.75 + rand / 2), [outcome.retry_after.to_i, 86_400].min].max.seconds.from_now
    paused_until = later if outcome.needs_somebody || outcome.retry_after
    # These have written nothing, and are no fault of the lead.
    attempted = outcome.needs_somebody || reason.start_with?("429") ? attempts - 1 : attempts
    update!(
      reason: reason, needs_somebody: outcome.needs_somebody, next_attempt_at: later, paused_until: paused_until, attempts: attempted
    )
  end
end
