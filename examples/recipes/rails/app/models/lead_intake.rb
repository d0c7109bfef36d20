require "json"
require "net/http"
require "stringio"
require "timeout"
require "zlib"

# Sends leads to the Lead Intake API, one attempt at a time. Does not need Rails.
class LeadIntake
  # The outcome of an attempt. `state`: delivered; already_open (the contact has an open lead); refused (no retry helps); or waiting (it is
  # sent again, with the same key and data). `needs_somebody`: somebody must correct the key, the studio or the address first.
  # `retry_after`: how many seconds nothing may be sent.
  Outcome = Struct.new(:state, :reason, :lead_id, :replayed, :needs_somebody, :retry_after, keyword_init: true)

  MAX_RESPONSE_BYTES = 4 * 1024 * 1024
  FROM_NETWORK = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError].freeze
  UUID = /\A\h{8}(-\h{4}){3}-\h{12}\z/
  # The service has only these codes. A firewall's response with another code is not a refusal.
  CODES = /\A(integration_\w+|subscription_suspended|route_not_found|method_not_allowed|internal_error)\z/

  # Raises ArgumentError for an address or a key with which every lead would fail.
  def initialize(url, key, attempt_seconds: 10)
    secret, checksum = key.to_s[4..].to_s.tr("-_", "+/").unpack1("m").unpack("a32N")
    unless key.to_s.match?(/\Alik_[\w-]{48}\z/) && Zlib.crc32(secret) == checksum
      raise ArgumentError, "LEAD_INTAKE_KEY must be the whole secret of an API key"
    end
    unless url.to_s.match?(%r{\Ahttps?://[^\s/?#@]+(/[^\s?#]*)?\z}) && !url.match?(%r{/v1(/integrations(/leads)?)?/?\z})
      raise ArgumentError, "LEAD_INTAKE_URL must be the address of the API, without /v1"
    end
    @url, @key, @attempt_seconds = URI("#{url.chomp("/")}/v1/integrations/leads"), key, attempt_seconds
  end

  # Sends a lead once. The capture has the fields of the API, as strings.
  def create(capture, idempotency_key)
    response, text = post(capture.to_json, idempotency_key)
    body = parsed(decoded(response, text))
    outcome = outcome_of(response, body.is_a?(Hash) ? body : {}, capture)
    # Other values of Retry-After, such as a date, are ignored.
    outcome.retry_after = response["Retry-After"].to_i if outcome.state == "waiting" && response["Retry-After"]&.match?(/\A\d+\z/)
    outcome
  rescue StandardError => error
    # The lead may have been created. Only errors of the network have messages without the visitor's text.
    why = FROM_NETWORK.any? { |each| error.is_a?(each) } ? ": #{error.message}" : ""
    Outcome.new(state: "waiting", reason: "no answer: #{error.class}#{why}")
  end

  private

  # Does not follow a redirect, which would send the key elsewhere, or turn the creation into a GET.
  def post(body, idempotency_key)
    request = Net::HTTP::Post.new(
      @url,
      "Authorization" => "Bearer #{@key}",
      "Content-Type" => "application/json",
      "Idempotency-Key" => idempotency_key,
      "Accept-Encoding" => "gzip",
      # Firewalls refuse programs without a name.
      "User-Agent" => "lead-intake-rails/1"
    )
    request.body = body
    text = String.new
    # The timeouts of Net::HTTP limit each step; this one limits the whole attempt.
    response = Timeout.timeout(@attempt_seconds) do
      Net::HTTP.start(@url.hostname, @url.port, use_ssl: @url.scheme == "https") do |http|
        http.request(request) do |answer|
          answer.read_body { |part| (text << part).bytesize > MAX_RESPONSE_BYTES && raise(IOError, "too long") }
        end
      end
    end
    # Net::HTTP treats the end of the connection as the end of the response, even within its headers.
    raise EOFError if text.bytesize < (response.content_length || 1) && !response.chunked?

    [response, text]
  end

  # Decodes the response, which an intermediary may have encoded unasked. The size is bounded: a few bytes may stand for gigabytes.
  def decoded(response, text)
    return text unless response["Content-Encoding"]&.match?(/\A(x-)?gzip\z/i)

    whole = Zlib::GzipReader.new(StringIO.new(text)).read(MAX_RESPONSE_BYTES + 1).to_s
    whole.bytesize > MAX_RESPONSE_BYTES ? raise(IOError, "too long") : whole
  end

  def parsed(text)
    JSON.parse(text)
  rescue JSON::ParserError
    nil
  end

  # Only the service's own response counts: proxies respond as well, even with JSON.
  def outcome_of(response, body, capture)
    status, lead, code = response.code.to_i, body["lead"], body["code"]
    if response.content_type&.downcase == "application/json" && status.between?(200, 299) && its_own?(lead, capture)
      return Outcome.new(state: "delivered", lead_id: lead["id"], replayed: response.key?("Idempotent-Replayed"))
    end
    coding = response["Content-Encoding"].to_s[/[\w-]{1,32}/]
    return failed(status, "in an encoding that is not read: #{coding}") if coding && body.empty?
    return failed(status, "not from the service") unless response.content_type&.downcase == "application/problem+json" && code.to_s.match?(CODES) && status >= 400

    reason = "#{code}: #{body["detail"] || body["title"]}"
    case code
    when "integration_lead_already_open"
      id = response["Link"].to_s[%r{/([^/>]+)>; rel="existing-lead"}, 1]
      Outcome.new(state: "already_open", reason: "#{status} #{reason}", lead_id: id)
    else
      [400, 409].include?(status) ? Outcome.new(state: "refused", reason: "#{status} #{reason}") : failed(status, reason)
    end
  end

  def failed(status, reason)
    passes = status < 300 || status >= 500 || [408, 429].include?(status)
    Outcome.new(state: "waiting", reason: "#{status} #{reason}", needs_somebody: !passes)
  end

  # Whether the lead belongs to this request, and not to another one. A missing or undocumented value proves nothing.
  def its_own?(lead, capture)
    return false unless lead.is_a?(Hash) && lead["id"].is_a?(String) && lead["id"].match?(UUID)

    %w[displayName sourceId note].all? do |name|
      is, sent = lead[name], capture[name]
      next true unless is.is_a?(String) || (is.nil? && lead.key?(name) && name != "displayName")

      name == "sourceId" ? is&.downcase == sent&.downcase : is == sent
    end
  end
end
