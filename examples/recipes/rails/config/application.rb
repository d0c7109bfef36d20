require "rails"
require "active_record/railtie"
require "action_controller/railtie"

# A minimal website for trying the recipe.
class Website < Rails::Application
  config.load_defaults 6.1
  config.eager_load = true
  # The secret signs cookies, which this website does not have.
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
  # Keeps names and contacts out of the log.
  config.filter_parameters += [:contact_request]
  config.logger = ActiveSupport::Logger.new($stdout)
  config.log_level = :warn
end
