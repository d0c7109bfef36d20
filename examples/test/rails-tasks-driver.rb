# Runs tasks of the Rails recipe in the website's folder, all in one process because Rails takes seconds to load. Each input line has the
# settings of one run as JSON. Its output line has the mail that cron would send.
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
    # `abort` has printed the reason.
  end
  replies.puts JSON.generate($stdout.string)
end
