//! Calls the core with tonic.
use std::{env, error::Error, process::ExitCode, time::Duration};

use tonic::{
    Request, Status,
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt;
use uuid::Uuid;

use leadintake::{
    Contact, CreateLeadRequest, CreateLeadResponse, Lead, ListLeadsRequest, contact,
    lead_intake_service_client::LeadIntakeServiceClient,
};

mod leadintake {
    tonic::include_proto!("leadintake.v1");
}

type Present = fn(Request<()>) -> Result<Request<()>, Status>;
type Leads = LeadIntakeServiceClient<InterceptedService<Channel, Present>>;

/// Authenticates a call to the core and sets a timeout of five seconds.
fn present_token(mut request: Request<()>) -> Result<Request<()>, Status> {
    if let Ok(token) = env::var("CORE_TOKEN") {
        let value = format!("Bearer {token}").parse();
        let value = value.map_err(|_| Status::internal("CORE_TOKEN has characters that a header cannot have"))?;
        request.metadata_mut().insert("authorization", value);
    }
    request.set_timeout(Duration::from_secs(5));
    Ok(request)
}

/// Returns why the service refused; none when it gave no reason, so that the outcome is unknown.
fn reason_of(status: &Status) -> Option<String> {
    let info = status.get_details_error_info()?;
    (info.domain == "leadintake").then_some(info.reason)
}

/// Creates a lead. Retries the same request while the outcome is unknown; the key prevents duplicates.
async fn create(leads: &mut Leads, lead: &CreateLeadRequest) -> Result<CreateLeadResponse, Status> {
    let mut wait = Duration::from_millis(250);
    for _ in 0..4 {
        match leads.create_lead(lead.clone()).await {
            Err(status) if reason_of(&status).is_none() => {
                tokio::time::sleep(wait.mul_f64(1.0 + fastrand::f64())).await;
                wait *= 2;
            }
            outcome => return outcome.map(|answer| answer.into_inner()),
        }
    }
    Ok(leads.create_lead(lead.clone()).await?.into_inner())
}

/// Returns every lead, newest first, page by page.
async fn all(leads: &mut Leads, studio_id: &str) -> Result<Vec<Lead>, Status> {
    let mut all = Vec::new();
    let mut request = ListLeadsRequest { studio_id: studio_id.into(), page_size: 2, ..Default::default() };
    loop {
        let page = leads.list_leads(request.clone()).await?.into_inner();
        all.extend(page.leads);
        if page.next_page_token.is_empty() {
            return Ok(all);
        }
        request.page_token = page.next_page_token;
    }
}

async fn run(leads: &mut Leads) -> Result<(), Status> {
    let studio_id = env::var("STUDIO_ID").unwrap_or("demo".into());
    let key = Uuid::new_v4().to_string();
    let mut request = CreateLeadRequest {
        studio_id: studio_id.clone(),
        idempotency_key: key.clone(),
        display_name: "Grace Hopper".into(),
        contact: Some(Contact { value: Some(contact::Value::Email(format!("{key}@example.com"))) }),
        ..Default::default()
    };

    let created = create(leads, &request).await?;
    println!("created {}", created.lead.unwrap_or_default().id);

    let again = create(leads, &request).await?;
    let what = if again.replayed { "replayed" } else { "created" };
    println!("{what} {}", again.lead.unwrap_or_default().id);

    request.display_name = "Grace".into();
    if let Err(status) = create(leads, &request).await {
        println!("refused {}", reason_of(&status).unwrap_or_default());
    }

    println!("listed {}", all(leads, &studio_id).await?.len());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let core = Endpoint::from_shared(format!("http://{}", env::var("CORE_ADDRESS")?))?;
    // The channel connects on the first call, and reconnects when necessary.
    let mut leads = LeadIntakeServiceClient::with_interceptor(core.connect_lazy(), present_token as Present);
    if let Err(status) = run(&mut leads).await {
        eprintln!("failed {}", reason_of(&status).unwrap_or(status.to_string()));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
