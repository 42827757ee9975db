// Requests to the API, by the session's cookie.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function api(method, path, body) {
  const options = { method, headers: { "X-Hawser-Page": "1" }, credentials: "same-origin" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(`/api/v1/${path}`, options);
  } catch {
    throw new ApiError(0, "The server does not answer: try again");
  }
  if (answer.status === 204) return null;
  const value = await answer.json().catch(() => ({ error: `The server answered ${answer.status}` }));
  if (answer.ok) return value;
  if (answer.status === 401 && path !== "session") dispatchEvent(new Event("hawser:ended"));
  throw new ApiError(answer.status, value.error ?? `The server answered ${answer.status}`);
}
