#!/usr/bin/env node
// An issuer of OpenID Connect for tests: npm's oidc-provider. One user signs in without a
// form: `--login` is the subject and the part of the address before the @.
//
// issuer.mjs --listen 127.0.0.1:5000 --redirect-uri URL [--algorithm ES256] [--login ada] [--in-token]
import { generateKeyPairSync } from "node:crypto";
import { parseArgs } from "node:util";
import { Provider, interactionPolicy } from "oidc-provider";

const { values } = parseArgs({
  options: {
    listen: { type: "string" },
    "redirect-uri": { type: "string" },
    algorithm: { type: "string", default: "RS256" },
    login: { type: "string", default: "ada" },
    // Whether ID tokens contain the address. Otherwise it is at the userinfo endpoint.
    "in-token": { type: "boolean", default: false },
  },
});

const KEYS = {
  RS256: ["rsa", { modulusLength: 2048 }],
  ES256: ["ec", { namedCurve: "P-256" }],
  EdDSA: ["ed25519", {}],
};
const [kind, options] = KEYS[values.algorithm];
const jwk = generateKeyPairSync(kind, options).privateKey.export({ format: "jwk" });

const [host, port] = values.listen.split(":");
const policy = interactionPolicy.base();
policy.remove("consent");
const provider = new Provider(`http://${values.listen}`, {
  clients: [
    {
      client_id: "weir-client",
      client_secret: "hidden/client+secret%",
      redirect_uris: [values["redirect-uri"]],
      id_token_signed_response_alg: values.algorithm,
    },
  ],
  enabledJWA: { idTokenSigningAlgValues: [values.algorithm] },
  jwks: { keys: [{ ...jwk, kid: "test-1", use: "sig", alg: values.algorithm }] },
  cookies: { keys: ["only for tests"] },
  conformIdTokenClaims: !values["in-token"],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  features: { devInteractions: { enabled: false } },
  interactions: { policy, url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@corp.example`, email_verified: true, name: `User ${id}` }),
  }),
  // Every scope that is asked for is granted.
  loadExistingGrant: async ({ oidc }) => {
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope([...oidc.requestParamOIDCScopes].join(" "));
    await grant.save();
    return grant;
  },
});
provider.use(async (context, next) => {
  if (!context.path.startsWith("/interaction/")) return next();
  const result = { login: { accountId: values.login } };
  context.redirect(await provider.interactionResult(context.req, context.res, result));
});
provider.listen(Number(port), host);
