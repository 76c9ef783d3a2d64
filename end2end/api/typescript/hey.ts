// The client of @hey-api/openapi-ts.

import * as api from "./client";
import { client } from "./client/client.gen";
import { round } from "./round";

const [url, key, organization_id] = process.argv.slice(2) as [string, string, string];
client.setConfig({ baseUrl: url as "/", auth: key });

const all = { path: { organization_id } };
const domain = (domain_id: string) => ({ path: { organization_id, domain_id } });
const one = (export_id: string) => ({ path: { organization_id, export_id } });

/** The body of a good answer. */
function good<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

/** The status of an answer, which a failed connection has not. */
function status({ response }: { response?: Response }): number {
  if (response === undefined) throw new Error("no answer");
  return response.status;
}

void round({
  createDomain: async (body) => good(await api.createDomain({ ...all, body })),
  getDomain: async (id) => {
    const answer = await api.getDomain(domain(id));
    return answer.data ?? status(answer);
  },
  updateDomain: async (id, body) => good(await api.updateDomain({ ...domain(id), body })),
  deleteDomain: async (id) => status(await api.deleteDomain(domain(id))),
  createExport: async (body) => good(await api.createBatchExport({ ...all, body })),
  getExport: async (id) => {
    const answer = await api.getBatchExport(one(id));
    return answer.data ?? status(answer);
  },
  updateExport: async (id, body) => good(await api.updateBatchExport({ ...one(id), body })),
  deleteExport: async (id) => status(await api.deleteBatchExport(one(id))),
});
