// What a client in TypeScript does with objects of a running service. The clients are
// generated from the API document and wrapped so that both make the same round.

import type { components } from "./schema";

type Schemas = components["schemas"];

/** The operations of one generated client. Each gives the answer, or its status. */
export interface Operations {
  createDomain(body: Schemas["CreateDomainInput"]): Promise<Schemas["Domain"]>;
  getDomain(id: string): Promise<Schemas["Domain"] | number>;
  updateDomain(id: string, body: Schemas["UpdateDomainInput"]): Promise<Schemas["Domain"]>;
  deleteDomain(id: string): Promise<number>;
  createExport(body: Schemas["CreateBatchExportInput"]): Promise<Schemas["BatchExport"]>;
  getExport(id: string): Promise<Schemas["BatchExport"] | number>;
  updateExport(id: string, body: Schemas["UpdateBatchExportInput"]): Promise<Schemas["BatchExport"]>;
  deleteExport(id: string): Promise<number>;
}

export async function round(api: Operations): Promise<void> {
  const domain = await api.createDomain({ domain: "round.example" });
  same("domain", await api.getDomain(domain.id), domain);
  const verified: string | null = domain.verified_at;
  equal("verified_at", verified, null);
  const changed = await api.updateDomain(domain.id, { domain: "round.example" });
  same("changed domain", changed, domain);
  equal("deleting the domain", await api.deleteDomain(domain.id), 204);
  equal("the deleted domain", await api.getDomain(domain.id), 404);

  const made = await api.createExport({
    name: "Round",
    interval: "hour",
    destination: {
      type: "HTTP",
      config: { url: "https://receiver.example/events", token: "t" },
    },
  });
  equal("destination", made.destination.type, "HTTP");
  same("export", await api.getExport(made.id), made);
  const paused = await api.updateExport(made.id, { paused: true });
  equal("paused", paused.paused, true);
  equal("deleting the export", await api.deleteExport(made.id), 204);
  equal("the deleted export", await api.getExport(made.id), 404);
}

function equal<T>(what: string, found: T, expected: T): void {
  if (found !== expected) throw new Error(`${what}: ${String(found)} is not ${String(expected)}`);
}

function same(what: string, found: unknown, expected: unknown): void {
  equal(what, JSON.stringify(found), JSON.stringify(expected));
}
