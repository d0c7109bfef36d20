# A driver of the conformance suite for the sender of the Rails recipe. The sender makes one attempt; this driver retries as the website does.
require "securerandom"
require_relative "../../examples/recipes/rails/app/models/lead_intake"

def report_on(request)
  return { unsupported: "it only creates leads" } unless request["call"] == "createLead"
  return { unsupported: "it cannot be cancelled" } if request["cancelAfterMs"]

  now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  deadline_ms, attempt_ms = request["options"].values_at("deadlineMs", "attemptTimeoutMs")
  deadline_seconds, attempt_seconds = [request["callDeadlineMs"] || deadline_ms, attempt_ms].map { |ms| ms / 1000.0 }
  limit = now.() + deadline_seconds
  key = request["idempotencyKey"] || SecureRandom.uuid
  (0..).each do |attempt|
    sender = LeadIntake.new(request["baseUrl"], request["apiKey"], attempt_seconds: [attempt_seconds, limit - now.()].min)
    outcome = sender.create(request["capture"], key)
    wait = [0.25 * 2**[attempt, 6].min, outcome.retry_after.to_i].max + 0.03
    return parts_of(outcome, key) if outcome.state != "waiting" || outcome.needs_somebody || now.() + wait + 1 > limit

    sleep wait
  end
rescue ArgumentError => error
  { refused: error.message }
end

def parts_of(outcome, key)
  case outcome.state
  when "delivered" then { result: { replayed: outcome.replayed, idempotencyKey: key } }
  when "already_open" then { error: { kind: "lead-already-open", written: "no", existingLeadId: outcome.lead_id } }
  when "refused"
    kind = outcome.reason.include?("integration_idempotency_conflict") ? "idempotency-conflict" : "problem"
    { error: { kind: kind } }
  else { error: { idempotencyKey: key } }
  end
end

$stdout.sync = true
$stdin.each_line do |line|
  request = JSON.parse(line)
  puts JSON.generate({ id: request["id"], isPartial: true }.merge(report_on(request)))
end
