/** A google.protobuf.Timestamp as the gRPC client decodes it. */
export interface WireTime {
  readonly seconds: number;
  readonly nanos: number;
}

/** A lead of the CRM API as the gRPC client decodes it. */
export interface WireLead {
  readonly id: string;
  readonly studioId: string;
  readonly displayName: string;
  readonly contact: { readonly email?: string; readonly phone?: string } | null;
  readonly sourceId?: string;
  readonly note?: string;
  readonly stage: string;
  readonly createTime: WireTime;
  readonly updateTime: WireTime;
}

export const millis = ({ seconds, nanos }: WireTime) => seconds * 1000 + nanos / 1e6;
