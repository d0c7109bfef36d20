# Runs tasks of the recipe for Rails, in the website's folder, because Rails takes seconds to load. Each line of the input has the settings
# of one run, as JSON; for each there is a line with what cron would mail.
require "json"
require "stringio"
require File.expand_path("config/environment")
Rails.application.load_tasks

replies = $stdout.dup
replies.sync = true
$stdin.each_line do |line|
  ENV.update(JSON.parse(line))
  $stdout = $stderr = StringIO.new
  begin
    Rake::Task.tasks.each(&:reenable)
    %w[leads:deliver leads:report].each { |name| Rake::Task[name].invoke }
  rescue SystemExit
    # As of `abort`, which has printed why.
  end
  replies.puts JSON.generate($stdout.string)
end
