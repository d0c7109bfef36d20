import os
import random
import sys
import time
import uuid
from typing import Iterator, Optional

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from leadintake.v1 import lead_intake_pb2 as pb
from leadintake.v1.lead_intake_pb2_grpc import LeadIntakeServiceStub

STUDIO_ID = os.environ.get("STUDIO_ID", "demo")
TOKEN = os.environ.get("CORE_TOKEN")
OPTIONS = {
    "metadata": [("authorization", f"Bearer {TOKEN}")] if TOKEN else [],
    "timeout": 5,
}


def reason_of(error: grpc.RpcError) -> Optional[str]:
    """Returns why the service refused; None when it gave no reason, so that the outcome is unknown."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        info = ErrorInfo()
        if detail.Unpack(info) and info.domain == "leadintake":
            return info.reason
    return None


def create(leads: LeadIntakeServiceStub, request: pb.CreateLeadRequest) -> pb.CreateLeadResponse:
    """Creates a lead. Retries the same request while the outcome is unknown; the key prevents duplicates."""
    attempt = 0
    while True:
        try:
            return leads.CreateLead(request, **OPTIONS)
        except grpc.RpcError as error:
            if reason_of(error) or attempt == 4:
                raise
            time.sleep(0.25 * 2**attempt * (1 + random.random()))
            attempt += 1


def all_leads(leads: LeadIntakeServiceStub) -> Iterator[pb.Lead]:
    page_token = None
    while page_token != "":
        request = pb.ListLeadsRequest(studio_id=STUDIO_ID, page_size=2, page_token=page_token)
        page = leads.ListLeads(request, **OPTIONS)
        yield from page.leads
        page_token = page.next_page_token


with grpc.insecure_channel(os.environ["CORE_ADDRESS"]) as channel:
    leads = LeadIntakeServiceStub(channel)
    key = str(uuid.uuid4())
    request = pb.CreateLeadRequest(
        studio_id=STUDIO_ID,
        idempotency_key=key,
        display_name="Grace Hopper",
        contact=pb.Contact(email=f"{key}@example.com"),
    )
    try:
        created = create(leads, request)
        print("created", created.lead.id)

        again = create(leads, request)
        print("replayed" if again.replayed else "created", again.lead.id)

        request.display_name = "Grace"
        try:
            create(leads, request)
        except grpc.RpcError as error:
            print("refused", reason_of(error))

        print("listed", sum(1 for _ in all_leads(leads)))
    except grpc.RpcError as error:
        sys.exit(f"failed {reason_of(error) or error}")
