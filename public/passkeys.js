// Uses passkeys. A form that needs one has a field with `data-passkey`: the path of the server
// function that makes the challenge. The button of the form is held back until the field has
// the answer of the authenticator; then the form is sent like any other.

const bytes = (text) => Uint8Array.from(
  atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const named = (list) => list.map((one) => ({ ...one, id: bytes(one.id) }));

// Nothing if the server refuses. The form is then sent without an answer, and the server says
// why on its page.
async function challenge(path) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/x-www-form-urlencoded" },
    body: "",
  });
  return answer.ok ? JSON.parse(await answer.json()) : null;
}

async function make(options) {
  const { id, rawId, type, response } = await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: named(options.excludeCredentials),
    },
  });
  return {
    id, rawId: text(rawId), type,
    response: {
      clientDataJSON: text(response.clientDataJSON),
      attestationObject: text(response.attestationObject),
    },
  };
}

async function use(options) {
  const { id, rawId, type, response } = await navigator.credentials.get({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      allowCredentials: named(options.allowCredentials),
    },
  });
  return {
    id, rawId: text(rawId), type,
    response: {
      clientDataJSON: text(response.clientDataJSON),
      authenticatorData: text(response.authenticatorData),
      signature: text(response.signature),
      userHandle: response.userHandle && text(response.userHandle),
    },
  };
}

async function send(form, field, button) {
  const status = form.querySelector("[data-passkey-status]");
  if (!window.PublicKeyCredential) {
    status.textContent = "This browser does not support passkeys.";
    return;
  }
  status.textContent = "";
  try {
    const options = await challenge(field.dataset.passkey);
    const makes = "passkeyMakes" in field.dataset;
    if (options) field.value = JSON.stringify(await (makes ? make(options) : use(options)));
  } catch (error) {
    status.textContent = error.name === "InvalidStateError"
      ? "This device has a passkey for your account already."
      : "No passkey was used. Try again, or use another way.";
    return;
  }
  form.requestSubmit(button);
  // An answer counts once.
  field.value = "";
}

let waits = false;
addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[type=submit]");
  const field = button?.form?.querySelector("input[data-passkey]");
  if (!field) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (waits || !button.form.reportValidity()) return;
  waits = true;
  try {
    await send(button.form, field, button);
  } finally {
    waits = false;
  }
}, true);
