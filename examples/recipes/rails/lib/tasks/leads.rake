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
      # The database may be back in a moment.
      warn "leads:work: #{error.class}"
    ensure
      sleep 5
    end
  end

  desc "Prints what is not delivered, and nothing when there is nothing, for a cron job each day"
  task report: :environment do
    LeadToSend.undelivered.each do |lead|
      puts "#{lead.id} #{lead.state} since #{lead.created_at.iso8601}: #{lead.reason || "not tried yet"}"
    end
  end
end
