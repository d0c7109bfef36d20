"""Maintains a copy of all leads in an SQLite file until stopped. It may be killed at any time and run concurrently.

As a named consumer it sets aside leads that it cannot store. After a restore of the database, it deletes the leads that
the restore lost.
"""

import os
import sqlite3
import sys
import time

import grpc
from google.protobuf.duration_pb2 import Duration
from leadintake.v1 import consumer_pb2
from leadintake.v1 import lead_intake_pb2 as pb
from leadintake.v1.consumer_pb2_grpc import ConsumerServiceStub
from leadintake.v1.lead_intake_pb2_grpc import LeadIntakeServiceStub

TOKEN = os.environ.get("CORE_TOKEN")
METADATA = [("authorization", f"Bearer {TOKEN}")] if TOKEN else []
CONSUMER = os.environ.get("CONSUMER", "")

copy = sqlite3.connect(os.environ["COPY"], isolation_level=None, timeout=30)
copy.execute(
    """CREATE TABLE IF NOT EXISTS leads (
        studio_id TEXT, id TEXT, revision INTEGER, display_name TEXT, contact TEXT, stage TEXT,
        came_at INTEGER DEFAULT (strftime('%s')), PRIMARY KEY (studio_id, id))"""
)
copy.execute("CREATE TABLE IF NOT EXISTS epochs (epoch INTEGER PRIMARY KEY, compared INTEGER DEFAULT 0)")
# A single statement, so that an older state never overwrites a newer one, and a lead that a restore lost does not come
# back. An erased lead has no name or contact.
PUT = """INSERT INTO leads (studio_id, id, revision, display_name, contact, stage)
    SELECT ?, ?, ?, ?, ?, ? WHERE ? = (SELECT max(epoch) FROM epochs)
    ON CONFLICT DO UPDATE SET revision = excluded.revision, display_name = excluded.display_name,
        contact = excluded.contact, stage = excluded.stage
    WHERE excluded.revision > revision"""


def compare(consumers: ConsumerServiceStub, response: pb.PullLeadChangesResponse) -> None:
    """Deletes the leads that the database has lost, if it was restored and nobody has done so since."""
    epoch = response.database_epoch
    copy.execute("INSERT OR IGNORE INTO epochs (epoch) VALUES (?)", (epoch,))
    if copy.execute("SELECT compared FROM epochs WHERE epoch = ?", (epoch,)).fetchone()[0]:
        return
    since = response.restored_to_time.seconds
    studios = copy.execute("SELECT DISTINCT studio_id FROM leads").fetchall() if epoch else []
    for (studio_id,) in studios:
        rows = copy.execute("SELECT id FROM leads WHERE studio_id = ? AND came_at >= ?", (studio_id, since)).fetchall()
        for first in range(0, len(rows), 500):
            ids = [lead_id for (lead_id,) in rows[first : first + 500]]
            request = consumer_pb2.FindMissingLeadsRequest(studio_id=studio_id, lead_ids=ids)
            for lead_id in consumers.FindMissingLeads(request, metadata=METADATA, timeout=5).missing_lead_ids:
                copy.execute("DELETE FROM leads WHERE studio_id = ? AND id = ?", (studio_id, lead_id))
    copy.execute("UPDATE epochs SET compared = 1 WHERE epoch = ?", (epoch,))


def row_of(change: pb.LeadChange) -> tuple:
    lead = change.lead
    contact = getattr(lead.contact, lead.contact.WhichOneof("value") or "email")
    return (lead.studio_id, lead.id, change.revision, lead.display_name, contact, pb.LeadStage.Name(lead.stage))


def set_aside(change: pb.LeadChange) -> consumer_pb2.LeadSetAside:
    """Sets a change aside. It comes again after minutes, then hours, and from the tenth time on only when an operator asks."""
    lead = consumer_pb2.LeadSetAside(
        studio_id=change.lead.studio_id, lead_id=change.lead.id, revision=change.revision, reason="CANNOT_STORE"
    )
    if change.attempts < 9:
        lead.retry_time.FromSeconds(int(time.time()) + 60 * 2**change.attempts)
    return lead


with grpc.insecure_channel(os.environ["CORE_ADDRESS"]) as channel:
    leads = LeadIntakeServiceStub(channel)
    consumers = ConsumerServiceStub(channel)
    while True:
        try:
            request = pb.PullLeadChangesRequest(max=100, wait=Duration(seconds=15), consumer=CONSUMER)
            seen, failed = [], []
            response = leads.PullLeadChanges(request, metadata=METADATA, timeout=20)
            compare(consumers, response)
            for change in response.changes:
                try:
                    copy.execute(PUT, (*row_of(change), response.database_epoch))
                    seen.append(
                        pb.LeadChangeAcknowledgement(
                            studio_id=change.lead.studio_id, lead_id=change.lead.id, revision=change.revision
                        )
                    )
                except sqlite3.Error:
                    if not CONSUMER:
                        raise
                    failed.append(set_aside(change))
            # If another program on this copy already knows of a restore, nothing was written.
            if response.database_epoch < copy.execute("SELECT max(epoch) FROM epochs").fetchone()[0]:
                print("the database is older than this copy: run `lead-intake restored`", file=sys.stderr)
                time.sleep(1)
                continue
            # Acknowledged last, because an acknowledged lead is not sent again.
            request = pb.AcknowledgeLeadChangesRequest(acknowledgements=seen, consumer=CONSUMER)
            leads.AcknowledgeLeadChanges(request, metadata=METADATA, timeout=5)
            if failed:
                request = consumer_pb2.SetAsideLeadChangesRequest(consumer=CONSUMER, leads=failed)
                consumers.SetAsideLeadChanges(request, metadata=METADATA, timeout=5)
        except grpc.RpcError as error:
            # Nothing is lost: unacknowledged leads are sent again.
            print(error.code(), file=sys.stderr)
            time.sleep(1)
