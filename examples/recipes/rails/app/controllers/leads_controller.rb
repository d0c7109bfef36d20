# Shows the leads that need attention to the people in the office, with the page of the clients' outboxes and the same JSON.
class LeadsController < ApplicationController
  PAGE = Rails.root.join("app/views/leads/page.html").read
  HASHES = %w[script style].map do |tag|
    "#{tag}-src 'sha256-#{Digest::SHA256.base64digest(PAGE[%r{<#{tag}[^>]*>(.*?)</#{tag}>}m, 1])}'"
  end
  HEADERS = {
    "Cache-Control" => "no-store",
    "Content-Security-Policy" => "default-src 'none'; #{HASHES.join("; ")}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy" => "no-referrer",
    "X-Robots-Tag" => "noindex"
  }.freeze

  # The header and JSON replace a token: before a browser lets another website's page send either, it asks for permission (CORS), which
  # nothing here gives.
  skip_forgery_protection
  before_action { response.headers.merge!(HEADERS) }
  before_action :require_password
  rescue_from ActiveRecord::ActiveRecordError do |error|
    logger.error("The page of the leads has failed: #{error.class}")
    render json: { error: "The website's database does not answer. Refresh in a minute; if it fails again, ask whoever runs the website." }, status: 500
  end

  def page
    if request.post?
      status, error = act
      return render json: { error: error }, status: status if error
    elsif !request.headers["Accept"].to_s.include?("application/json")
      return render body: PAGE, content_type: "text/html; charset=utf-8"
    end
    render json: report
  end

  private

  def require_password
    password = ENV["LEAD_INTAKE_PAGE_PASSWORD"].to_s
    return render plain: "LEAD_INTAKE_PAGE_PASSWORD must be set.", status: 503 if password.empty?

    authenticate_or_request_with_http_basic("Leads") do |_, given|
      ActiveSupport::SecurityUtils.secure_compare(given.to_s, password)
    end
  end

  # Returns a status and the fault; nil: the action is done.
  def act
    return [415, "The request must have the type application/json."] unless request.media_type == "application/json"
    return [403, "The request is not from the page: it must have the header X-Outbox-Page: 1."] unless request.headers["X-Outbox-Page"].to_s.strip == "1"

    action, key = JSON.parse(request.raw_post).to_h.values_at("action", "idempotencyKey")
    return [409, "This website cannot compare."] if action == "compare"
    return [400, "The action must be retry or discard with an idempotencyKey."] unless %w[retry discard].include?(action) && key.is_a?(String)

    lead = LeadToSend.find_by(idempotency_key: key)
    return if lead && (action == "retry" ? lead.send_again : lead.discard)

    [409, action == "retry" && lead&.capture ? "The service has this lead already: read it, then discard it." : "There is no lead with data that has the key #{key}."]
  rescue JSON::ParserError, TypeError, NoMethodError
    [400, "The request is not JSON of the page."]
  end

  def report
    needy, waiting = LeadToSend.in_need, LeadToSend.waiting
    reasons = waiting.pluck(:reason).map { |reason| reason ? reason[/\A[^:]{0,36}/] : "not tried yet" }
    {
      needsAttention: { count: needy.count, entries: needy.limit(100).map { |lead| entry(lead) } },
      waiting: {
        count: reasons.size,
        since: waiting.minimum(:created_at)&.utc&.iso8601(3),
        reasons: reasons.tally.sort_by { |reason, count| [-count, reason] }.to_h
      },
      comparison: nil,
      mayCompare: false
    }
  end

  def entry(lead)
    {
      idempotencyKey: lead.idempotency_key,
      state: lead.state,
      createdAt: lead.created_at.utc.iso8601(3),
      attempts: lead.attempts,
      reason: lead.reason,
      capture: lead.capture
    }
  end
end
