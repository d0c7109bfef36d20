require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie"

# The least of a website that the recipe can be tried with.
class Website < Rails::Application
  config.load_defaults 6.1
  config.eager_load = true
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
  config.active_job.queue_adapter = :async
  # Neither names nor contacts stand in the log.
  config.filter_parameters += [:contact_request]
  config.active_job.log_arguments = false
  config.logger = ActiveSupport::Logger.new($stdout)
  config.log_level = :warn

  # Its queue is in memory: what waited when the website stopped is sent when it starts again.
  server { LeadToSend.resume(not_touched_since: Time.current) }
end
