import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import leadintake.v1.LeadIntake.Contact;
import leadintake.v1.LeadIntake.CreateLeadRequest;
import leadintake.v1.LeadIntake.CreateLeadResponse;
import leadintake.v1.LeadIntake.Lead;
import leadintake.v1.LeadIntake.ListLeadsRequest;
import leadintake.v1.LeadIntakeServiceGrpc;
import leadintake.v1.LeadIntakeServiceGrpc.LeadIntakeServiceBlockingStub;

/** Calls the core with grpc-java. */
public final class Leads {
  private static final String STUDIO_ID = System.getenv().getOrDefault("STUDIO_ID", "demo");

  private final LeadIntakeServiceBlockingStub leads;

  private Leads(LeadIntakeServiceBlockingStub leads) {
    this.leads = leads;
  }

  /** Returns why the service refused; empty when it gave no reason, so that the outcome is unknown. */
  private static Optional<String> reasonOf(StatusRuntimeException error) {
    try {
      for (var detail : StatusProto.fromThrowable(error).getDetailsList()) {
        if (!detail.is(ErrorInfo.class)) continue;
        var info = detail.unpack(ErrorInfo.class);
        if (info.getDomain().equals("leadintake")) return Optional.of(info.getReason());
      }
      return Optional.empty();
    } catch (InvalidProtocolBufferException notUnderstood) {
      return Optional.empty();
    }
  }

  /** Creates a lead. The channel retries it while the core is unreachable; the key prevents duplicates. */
  private CreateLeadResponse create(CreateLeadRequest request) {
    return leads.withDeadlineAfter(20, SECONDS).createLead(request);
  }

  /** Returns every lead, newest first, page by page. */
  private List<Lead> all() {
    var all = new ArrayList<Lead>();
    var request = ListLeadsRequest.newBuilder().setStudioId(STUDIO_ID).setPageSize(2);
    do {
      var page = leads.withDeadlineAfter(20, SECONDS).listLeads(request.build());
      all.addAll(page.getLeadsList());
      request.setPageToken(page.getNextPageToken());
    } while (!request.getPageToken().isEmpty());
    return all;
  }

  private void run() {
    var key = UUID.randomUUID().toString();
    var request =
        CreateLeadRequest.newBuilder()
            .setStudioId(STUDIO_ID)
            .setIdempotencyKey(key)
            .setDisplayName("Grace Hopper")
            .setContact(Contact.newBuilder().setEmail(key + "@example.com"))
            .build();

    System.out.println("created " + create(request).getLead().getId());

    var again = create(request);
    System.out.println((again.getReplayed() ? "replayed " : "created ") + again.getLead().getId());

    try {
      create(request.toBuilder().setDisplayName("Grace").build());
    } catch (StatusRuntimeException error) {
      System.out.println("refused " + reasonOf(error).orElse("?"));
    }

    System.out.println("listed " + all().size());
  }

  /** The calls that a channel retries automatically while the core is unreachable. */
  private static Map<String, ?> serviceConfig() throws IOException {
    try (var file = new InputStreamReader(Leads.class.getResourceAsStream("/service-config.json"), UTF_8)) {
      return new Gson().fromJson(file, new TypeToken<Map<String, ?>>() {}.getType());
    }
  }

  public static void main(String[] args) throws IOException {
    var headers = new Metadata();
    var token = System.getenv("CORE_TOKEN");
    if (token != null) {
      headers.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + token);
    }
    ManagedChannel channel =
        Grpc.newChannelBuilder(System.getenv("CORE_ADDRESS"), InsecureChannelCredentials.create())
            .defaultServiceConfig(serviceConfig())
            .intercept(MetadataUtils.newAttachHeadersInterceptor(headers))
            .build();
    try {
      new Leads(LeadIntakeServiceGrpc.newBlockingStub(channel)).run();
    } catch (StatusRuntimeException error) {
      System.err.println("failed " + reasonOf(error).orElse(error.toString()));
      System.exit(1);
    } finally {
      channel.shutdown();
    }
  }
}
