# Calls the core with Ruby's gRPC.
require "securerandom"
require "grpc"
require "google/protobuf/well_known_types"
require "google/rpc/error_details_pb"

$LOAD_PATH.unshift(File.join(__dir__, "gen"))
require "leadintake/v1/lead_intake_services_pb"

include Leadintake::V1

STUDIO_ID = ENV.fetch("STUDIO_ID", "demo")
TOKEN = ENV["CORE_TOKEN"]
METADATA = TOKEN ? { "authorization" => "Bearer #{TOKEN}" } : {}

# The calls that the channel retries automatically while the core is unreachable.
SERVICE_CONFIG = File.read(".generated/lead-intake-proto/service-config.json")

LEADS = LeadIntakeService::Stub.new(
  ENV.fetch("CORE_ADDRESS"),
  :this_channel_is_insecure,
  channel_args: { "grpc.service_config" => SERVICE_CONFIG },
  timeout: 20
)

# Returns why the service refused; nil when it gave no reason, so that the outcome is unknown.
def reason_of(error)
  details = error.to_rpc_status&.details || []
  infos = details.filter_map { |detail| detail.unpack(Google::Rpc::ErrorInfo) }
  infos.find { |info| info.domain == "leadintake" }&.reason
end

# Creates a lead. The channel retries it while the core is unreachable; the key prevents duplicates.
def create(request)
  LEADS.create_lead(request, metadata: METADATA)
end

# Returns every lead, newest first, page by page.
def all
  request = ListLeadsRequest.new(studio_id: STUDIO_ID, page_size: 2)
  leads = []
  loop do
    page = LEADS.list_leads(request, metadata: METADATA)
    leads.concat(page.leads.to_a)
    return leads if page.next_page_token.empty?
    request.page_token = page.next_page_token
  end
end

begin
  key = SecureRandom.uuid
  request = CreateLeadRequest.new(
    studio_id: STUDIO_ID,
    idempotency_key: key,
    display_name: "Grace Hopper",
    contact: Contact.new(email: "#{key}@example.com")
  )
  created = create(request)
  puts "created #{created.lead.id}"

  again = create(request)
  puts "#{again.replayed ? "replayed" : "created"} #{again.lead.id}"

  begin
    request.display_name = "Grace"
    create(request)
  rescue GRPC::BadStatus => error
    puts "refused #{reason_of(error)}"
  end

  puts "listed #{all.size}"
rescue GRPC::BadStatus => error
  abort "failed #{reason_of(error) || error.message}"
end
