// Requests to the API, by the session's cookie.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options) {
  try {
    return await fetch(`/api/v1/${path}`, { ...options, credentials: "same-origin" });
  } catch {
    throw new ApiError(0, "The server does not answer: try again");
  }
}

async function refused(answer, path) {
  if (answer.status === 401 && path !== "session") dispatchEvent(new Event("hawser:ended"));
  const value = await answer.json().catch(() => ({}));
  return new ApiError(answer.status, value.error ?? `The server answered ${answer.status}`);
}

// A file, and its name.
export async function file(path) {
  const answer = await ask(path, {});
  if (!answer.ok) throw await refused(answer, path);
  const name = answer.headers.get("Content-Disposition")?.match(/filename="([^"]+)"/)?.[1] ?? "file";
  return { blob: await answer.blob(), name };
}

export async function api(method, path, body) {
  const options = { method, headers: { "X-Hawser-Page": "1" } };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await ask(path, options);
  if (answer.status === 204) return null;
  if (!answer.ok) throw await refused(answer, path);
  return answer.json().catch(() => { throw new ApiError(answer.status, "The server sent an answer that is not JSON"); });
}
