import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import leadintake.ApiClient;
import leadintake.ApiException;
import leadintake.ApiResponse;
import leadintake.JSON;
import leadintake.api.LeadsApi;
import leadintake.model.Contact;
import leadintake.model.EmailContact;
import leadintake.model.Lead;
import leadintake.model.LeadCapture;
import leadintake.model.LeadList;
import leadintake.model.LeadResponse;
import leadintake.model.PhoneContact;
import leadintake.model.ProblemDetails;

/** Uses the client that openapi-generator makes for Java, and prints the results as JSON. */
class UseClient {
  interface Call {
    void run() throws ApiException;
  }

  static LeadsApi apiWith(String key, String url) {
    ApiClient client = new ApiClient().setBasePath(System.getenv(url));
    client.setBearerToken(System.getenv(key));
    return new LeadsApi(client);
  }

  static ApiResponse<LeadResponse> create(LeadCapture capture, String key, String idempotencyKey) throws ApiException {
    return apiWith(key, "URL").createLeadWithHttpInfo(idempotencyKey, capture, null);
  }

  static LeadCapture captured(Contact contact) {
    return new LeadCapture().displayName("Zoë 🦉").contact(contact);
  }

  static Contact email(String value) {
    return new Contact(new EmailContact().type(EmailContact.TypeEnum.EMAIL).value(value));
  }

  static Contact phone(String value) {
    return new Contact(new PhoneContact().type(PhoneContact.TypeEnum.PHONE).value(value));
  }

  static String newId() {
    return UUID.randomUUID().toString();
  }

  /** Returns a lead as plain values, with times in milliseconds since 1970. */
  static Map<String, Object> leadFields(Lead lead) {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("id", lead.getId());
    fields.put("displayName", lead.getDisplayName());
    fields.put("stage", lead.getStage().getValue());
    fields.put("sourceId", lead.getSourceId());
    fields.put("note", lead.getNote());
    fields.put("createdAt", lead.getCreatedAt().toInstant().toEpochMilli());
    fields.put("updatedAt", lead.getUpdatedAt().toInstant().toEpochMilli());
    return fields;
  }

  static Map<String, Object> refusal(Call call) {
    try {
      call.run();
      return null;
    } catch (ApiException error) {
      ProblemDetails problem = JSON.deserialize(error.getResponseBody(), ProblemDetails.class);
      Map<String, Object> refusal = new LinkedHashMap<>();
      refusal.put("status", error.getCode());
      refusal.put("code", problem.getCode().getValue());
      refusal.put("fields", problem.getFields().isEmpty() ? null : problem.getFields());
      refusal.put("requestId", problem.getRequestId());
      refusal.put("retryAfter", first(error.getResponseHeaders(), "retry-after"));
      return refusal;
    }
  }

  static String first(Map<String, List<String>> headers, String name) {
    return headers.containsKey(name) ? headers.get(name).get(0) : null;
  }

  public static void main(String[] arguments) throws ApiException {
    LeadCapture byEmail = captured(email("zoë@straße.example")).note("a\nb");
    LeadCapture byPhone = captured(phone("+49 30 123456")).sourceId(System.getenv("SOURCE_ID"));
    LeadCapture other = captured(email("other@example.org"));
    LeadCapture letters = captured(phone("call me"));
    LeadCapture foreign = captured(email("other@example.org")).sourceId(newId());

    LeadsApi api = apiWith("KEY", "URL");
    String idempotencyKey = newId();
    ApiResponse<LeadResponse> created = create(byEmail, "KEY", idempotencyKey);
    ApiResponse<LeadResponse> replayed = create(byEmail, "KEY", idempotencyKey);
    Lead phoned = create(byPhone, "KEY", newId()).getData().getLead();
    Lead lead = created.getData().getLead();

    List<List<String>> pages = new ArrayList<>();
    String cursor = null;
    do {
      LeadList page = api.listLeads(1, cursor, null);
      pages.add(page.getLeads().stream().map(Lead::getId).toList());
      cursor = page.getNextCursor();
    } while (cursor != null);

    LeadsApi scarce = apiWith("SCARCE_KEY", "SCARCE_URL");
    scarce.createLead(newId(), other, null);

    Map<String, Object> refusals = new LinkedHashMap<>();
    refusals.put("invalid contact", refusal(() -> create(letters, "KEY", newId())));
    refusals.put("invalid cursor", refusal(() -> api.listLeads(null, "none", null)));
    refusals.put("invalid source", refusal(() -> create(foreign, "KEY", newId())));
    refusals.put("invalid key", refusal(() -> create(other, "INVALID_KEY", newId())));
    refusals.put("suspended", refusal(() -> create(other, "SUSPENDED_KEY", newId())));
    refusals.put("other scope", refusal(() -> create(other, "READING_KEY", newId())));
    refusals.put("issuer", refusal(() -> create(other, "FORMER_OWNER_KEY", newId())));
    refusals.put("unknown lead", refusal(() -> api.getLead(newId(), null)));
    refusals.put("other data", refusal(() -> create(other, "KEY", idempotencyKey)));
    refusals.put("already open", refusal(() -> create(byEmail, "KEY", newId())));
    refusals.put("used up", refusal(() -> scarce.createLead(newId(), other, null)));

    Map<String, Object> done = new LinkedHashMap<>();
    done.put("created", leadFields(lead));
    done.put(
        "isReplay",
        Arrays.asList(
            first(created.getHeaders(), "idempotent-replayed"), first(replayed.getHeaders(), "idempotent-replayed")));
    done.put("replayed", leadFields(replayed.getData().getLead()));
    done.put("byPhone", leadFields(phoned));
    done.put("read", leadFields(api.getLead(lead.getId(), null).getLead()));
    done.put("pages", pages);
    done.put("refusals", refusals);
    Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    System.out.println(gson.toJson(done));
  }
}
