require "net/http"

# Sends a lead, and again until its outcome is certain.
class SendLeadJob < ApplicationJob
  LONGEST_WAIT_SECONDS = 60
  ATTEMPT_SECONDS = 10

  # No certain outcome yet: the same again, no sooner than the service wants it.
  class Uncertain < StandardError
    attr_reader :retry_after

    def initialize(reason, retry_after = 0)
      super(reason)
      @retry_after = retry_after
    end
  end

  rescue_from(Uncertain) do |uncertain|
    back_off = [2**[executions - 1, 10].min, LONGEST_WAIT_SECONDS].min * (0.75 + rand / 2)
    arguments.first.update!(reason: uncertain.message)
    retry_job(wait: [back_off, uncertain.retry_after].max.seconds)
  end

  # It was removed meanwhile: there is nothing to send.
  discard_on ActiveJob::DeserializationError

  def perform(lead)
    return unless lead.waiting?

    response = post(lead)
    problem = response.is_a?(Net::HTTPCreated) ? nil : JSON.parse(response.body)["code"]
    case response.code.to_i
    when 201 then lead.settle("delivered", lead_id: JSON.parse(response.body).dig("lead", "id"))
    when 408, 429, 500.. then raise Uncertain.new("#{response.code} #{problem}", response["Retry-After"].to_i)
    else lead.settle(problem == "integration_lead_already_open" ? "open_already" : "refused", reason: "#{response.code} #{problem}")
    end
  rescue JSON::ParserError
    # Not from the service: something in front of it has answered.
    raise Uncertain, response.code
  rescue SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError => error
    raise Uncertain, "no answer: #{error.class}"
  end

  private

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
