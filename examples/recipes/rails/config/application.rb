require "rails"
require "active_record/railtie"
require "action_controller/railtie"

# The least of a website that the recipe can be tried with.
class Website < Rails::Application
  config.load_defaults 6.1
  config.eager_load = true
  # It signs cookies, and this website has none.
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
  # Neither names nor contacts stand in the log.
  config.filter_parameters += [:contact_request]
  config.logger = ActiveSupport::Logger.new($stdout)
  config.log_level = :warn
end
