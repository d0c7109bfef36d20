"""Loads the leads that have changed since the last load into an SQLite file, for a nightly report. It may be killed and repeated."""

import os
import sqlite3
import time

import grpc
from leadintake.v1 import lead_intake_pb2 as pb
from leadintake.v1.lead_intake_pb2_grpc import LeadIntakeServiceStub

# How far loads overlap: the clocks of cores differ, and a change can be read only shortly after its time.
OVERLAP_MS = 5 * 60_000

TOKEN = os.environ.get("CORE_TOKEN")
METADATA = [("authorization", f"Bearer {TOKEN}")] if TOKEN else []

report = sqlite3.connect(os.environ["REPORT"], isolation_level=None, timeout=30)
report.executescript(
    """CREATE TABLE IF NOT EXISTS leads (
        studio_id TEXT, id TEXT, updated_ms INTEGER, stage TEXT, PRIMARY KEY (studio_id, id));
    CREATE TABLE IF NOT EXISTS loads (began_ms INTEGER);"""
)
# A lead that changes during the load comes again.
PUT = """INSERT INTO leads VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET updated_ms = excluded.updated_ms, stage = excluded.stage
    WHERE excluded.updated_ms > updated_ms"""


def row_of(lead: pb.Lead) -> tuple:
    return (lead.studio_id, lead.id, lead.update_time.ToMilliseconds(), pb.LeadStage.Name(lead.stage))


began_ms = int(time.time() * 1000)
(last_ms,) = report.execute("SELECT max(began_ms) FROM loads").fetchone()
request = pb.ExportLeadsRequest()
# The first load reads all leads.
if last_ms is not None:
    request.filter.update_time.start_time.FromMilliseconds(last_ms - OVERLAP_MS)
count = 0
with grpc.insecure_channel(os.environ["CORE_ADDRESS"]) as channel:
    for message in LeadIntakeServiceStub(channel).ExportLeads(request, metadata=METADATA):
        report.executemany(PUT, [row_of(lead) for lead in message.leads])
        count += len(message.leads)
# This comes last, so that an interrupted load begins again.
report.execute("INSERT INTO loads VALUES (?)", (began_ms,))
print(f"loaded {count}")
