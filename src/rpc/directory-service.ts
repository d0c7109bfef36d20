import type { ServiceImpl } from '@connectrpc/connect';
import type { DirectoryService } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import type { Dependencies } from '../usecases/dependencies.ts';
import {
  getStudio,
  listLeadSources,
  putLeadSource,
  putMember,
  putStudio,
  removeMember,
} from '../usecases/keep-directory.ts';
import { leadSourceToWire, memberRole, memberToWire, studioStatus, studioToWire } from './convert.ts';

/** The CRM's directory over RPC. */
export function directoryService(deps: Dependencies): ServiceImpl<typeof DirectoryService> {
  return {
    async putStudio({ studio, memberId }) {
      const command = studio && {
        ...studio,
        status: studioStatus.fromWire(studio.status),
        regionCode: studio.regionCode,
        memberId,
      };
      return { studio: studioToWire(await putStudio(deps, command)) };
    },

    async getStudio({ studioId }) {
      return { studio: studioToWire(await getStudio(deps, studioId)) };
    },

    async putMember({ member }) {
      const command = member && { ...member, role: memberRole.fromWire(member.role) };
      return { member: memberToWire(await putMember(deps, command)) };
    },

    async removeMember({ studioId, memberId }) {
      const removed = await removeMember(deps, { studioId, memberId });
      return removed ? { member: memberToWire(removed) } : {};
    },

    async putLeadSource({ leadSource }) {
      return { leadSource: leadSourceToWire(await putLeadSource(deps, leadSource)) };
    },

    async listLeadSources({ studioId }) {
      return { leadSources: (await listLeadSources(deps, studioId)).map(leadSourceToWire) };
    },
  };
}
