// The client of openapi-fetch, with the types of openapi-typescript.

import createClient from "openapi-fetch";

import { round } from "./round";
import type { paths } from "./schema";

const [url, key, organization_id] = process.argv.slice(2) as [string, string, string];
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

const DOMAINS = "/api/organizations/{organization_id}/domains/";
const DOMAIN = "/api/organizations/{organization_id}/domains/{domain_id}/";
const EXPORTS = "/api/organizations/{organization_id}/batch_exports/";
const EXPORT = "/api/organizations/{organization_id}/batch_exports/{export_id}/";
const all = { params: { path: { organization_id } } };
const domain = (domain_id: string) => ({ params: { path: { organization_id, domain_id } } });
const one = (export_id: string) => ({ params: { path: { organization_id, export_id } } });

/** The body of a good answer. */
function good<T>({ data, error }: { data?: T; error?: { code: string } }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

void round({
  createDomain: async (body) => good(await api.POST(DOMAINS, { ...all, body })),
  getDomain: async (id) => {
    const { data, response } = await api.GET(DOMAIN, domain(id));
    return data ?? response.status;
  },
  updateDomain: async (id, body) => good(await api.PATCH(DOMAIN, { ...domain(id), body })),
  deleteDomain: async (id) => (await api.DELETE(DOMAIN, domain(id))).response.status,
  createExport: async (body) => good(await api.POST(EXPORTS, { ...all, body })),
  getExport: async (id) => {
    const { data, response } = await api.GET(EXPORT, one(id));
    return data ?? response.status;
  },
  updateExport: async (id, body) => good(await api.PATCH(EXPORT, { ...one(id), body })),
  deleteExport: async (id) => (await api.DELETE(EXPORT, one(id))).response.status,
});
