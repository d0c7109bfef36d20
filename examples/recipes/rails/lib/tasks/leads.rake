namespace :leads do
  # A wrong address or key is reported at once, in one line.
  task client: :environment do
    LeadToSend.client
  rescue ArgumentError => error
    abort error.message
  end

  desc "Sends what is due, for a cron job each minute"
  task deliver: :client do
    LeadToSend.deliver
  end

  desc "Sends leads until it is stopped, which it may be at any time"
  task work: :client do
    loop do
      LeadToSend.deliver
    rescue StandardError => error
      # The database may be back in a moment. The message could contain what a visitor wrote.
      warn "leads:work: #{(error.cause || error).class}, tried again in 5 seconds"
    ensure
      # The next pass gets a connection that works: this one may be of a database that has restarted since.
      LeadToSend.connection_pool.release_connection
      sleep 5
    end
  end

  desc "Prints the leads that need somebody, with what the visitor wrote, for a cron job each day"
  task report: :environment do
    LeadToSend.in_need.each do |lead|
      puts "#{lead.id}, from #{lead.created_at.iso8601}, #{lead.state}: #{lead.reason || "not tried yet"}"
      puts "  #{JSON.generate(lead.capture)}"
    end
  end
end
