require "net/http"

# Sends a lead, and again until its outcome is certain.
class SendLeadJob < ApplicationJob
  MAX_WAIT_SECONDS = 60
  ATTEMPT_SECONDS = 10

  # It was removed meanwhile: there is nothing to send.
  discard_on ActiveJob::DeserializationError

  def perform(lead)
    return unless lead.waiting?

    response = post(lead)
    answer = JSON.parse(response.body)
    reason = "#{response.code} #{answer["code"]}"
    case response.code.to_i
    when 201 then lead.settle("delivered", lead_id: answer.dig("lead", "id"))
    when 408, 429, 500.. then repeat(lead, reason, response["Retry-After"].to_i)
    else lead.settle(answer["code"] == "integration_lead_already_open" ? "open_already" : "refused", reason: reason)
    end
  rescue SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError => error
    repeat(lead, "no answer: #{error.class}")
  rescue JSON::ParserError
    # Something in front of the service has answered.
    repeat(lead, "#{response.code}, not from the service")
  end

  private

  # The outcome is not certain: the same again, later each time, and no sooner than the service wants it.
  def repeat(lead, reason, retry_after = 0)
    lead.update!(reason: reason)
    back_off = [2**[executions - 1, 10].min, MAX_WAIT_SECONDS].min * (0.75 + rand / 2)
    retry_job(wait: [back_off, retry_after].max.seconds)
  end

  def post(lead)
    address = URI("#{ENV.fetch("LEAD_INTAKE_URL")}/v1/integrations/leads")
    request = Net::HTTP::Post.new(
      address,
      "Authorization" => "Bearer #{ENV.fetch("LEAD_INTAKE_KEY")}",
      "Content-Type" => "application/json",
      "Idempotency-Key" => lead.idempotency_key
    )
    request.body = lead.capture.to_json
    # What Net::HTTP calls a timeout bounds each step; this bounds all of them.
    Timeout.timeout(ATTEMPT_SECONDS) do
      Net::HTTP.start(address.host, address.port, use_ssl: address.scheme == "https") { |http| http.request(request) }
    end
  end
end
