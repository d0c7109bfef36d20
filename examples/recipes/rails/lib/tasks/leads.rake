namespace :leads do
  # Reports a wrong address or key immediately, in one line.
  task client: :environment do
    LeadToSend.client
  rescue ArgumentError => error
    abort error.message
  end

  desc "Sends due leads, for a cron job each minute"
  task deliver: :client do
    LeadToSend.deliver
  end

  desc "Sends leads until it is stopped, which may be at any time"
  task work: :client do
    loop do
      LeadToSend.deliver
    rescue StandardError => error
      # The database may be back in a moment. The message is left out, because it could contain a visitor's text.
      warn "leads:work: #{(error.cause || error).class}, tried again in 5 seconds"
    ensure
      # The next pass gets a working connection: the database may have restarted since this one was opened.
      LeadToSend.connection_pool.release_connection
      sleep 5
    end
  end

  desc "Prints the leads that need attention, with their messages, for a cron job each day"
  task report: :environment do
    LeadToSend.in_need.each do |lead|
      puts "#{lead.id}, from #{lead.created_at.iso8601}, #{lead.state}: #{lead.reason || "not tried yet"}"
      puts "  #{JSON.generate(lead.capture)}"
    end
  end
end
