"""Prints the health of the core, as a load balancer sees it, until the core stops. No token is needed."""

import os

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

SERVICE = "leadintake.v1.LeadIntakeService"
name_of = HealthCheckResponse.ServingStatus.Name


def check() -> str:
    """Checks once, over a separate connection."""
    with grpc.insecure_channel(os.environ["CORE_ADDRESS"]) as channel:
        return name_of(HealthStub(channel).Check(HealthCheckRequest(service=SERVICE), timeout=5).status)


with grpc.insecure_channel(os.environ["CORE_ADDRESS"]) as channel:
    for answer in HealthStub(channel).Watch(HealthCheckRequest(service=SERVICE)):
        print("watched", name_of(answer.status), "checked", check(), flush=True)
