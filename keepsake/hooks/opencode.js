// Keepsake's plugin for opencode: tells what happens to `keepsake hook`, and hands its memories to the agent.
// It waits for nothing but the start of a session and a prompt, and a failure here never reaches opencode.
import { spawn } from "node:child_process"

const COMMAND = [__KEEPSAKE_COMMAND__]
const PATIENCE_MS = 4000

function hook(event, told) {
  return new Promise((resolve) => {
    let said = ""
    try {
      const words = [...COMMAND.slice(1), event, "--client", "opencode"]
      const child = spawn(COMMAND[0], words, { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
      const timer = setTimeout(() => {
        // Not when its output ends: a process that it started may hold on to that.
        resolve("")
        child.kill("SIGKILL")
        child.stdout.destroy()
      }, PATIENCE_MS)
      timer.unref?.()
      child.on("error", () => resolve(""))
      child.on("close", () => {
        clearTimeout(timer)
        try {
          resolve(JSON.parse(said).context || "")
        } catch {
          resolve("")
        }
      })
      child.stdout.on("data", (part) => (said += part))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify({ ...told, hook_event_name: event }))
    } catch {
      resolve("")
    }
  })
}

export const Keepsake = async ({ directory, worktree }) => {
  const cwd = directory || worktree || process.cwd()
  const started = new Map()
  const asked = new Map()
  const roles = new Map()
  const answers = new Map()
  const of = (session, more) => ({ session_id: session, cwd, ...more })

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      const prompt = (output.parts || [])
        .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
        .map((part) => part.text)
        .join("\n")
      if (!started.has(session)) started.set(session, await hook("session-start", of(session, { source: "startup" })))
      if (prompt) asked.set(session, await hook("prompt", of(session, { prompt, messageID: input.messageID || "" })))
    },

    "experimental.chat.system.transform": async (input, output) => {
      for (const text of [started.get(input.sessionID), asked.get(input.sessionID)]) if (text) output.system.push(text)
    },

    "tool.execute.after": async (input, output) => {
      const used = { tool_name: input.tool, tool_input: input.args || {}, tool_use_id: input.callID }
      void hook("tool", of(input.sessionID, { ...used, tool_response: output.output || "" }))
    },

    event: async ({ event }) => {
      const told = event.properties || {}
      if (event.type === "message.updated" && told.info) roles.set(told.info.id, told.info.role)
      if (event.type === "message.part.updated" && told.part?.type === "text" && roles.get(told.part.messageID) === "assistant")
        answers.set(told.part.sessionID, told.part.text)
      if (event.type === "session.idle") {
        const last_assistant_message = answers.get(told.sessionID) || ""
        answers.delete(told.sessionID)
        asked.delete(told.sessionID)
        roles.clear()
        void hook("turn-end", of(told.sessionID, { last_assistant_message }))
      }
      if (event.type === "session.compacted") {
        // What was injected went with the rest: it is handed over anew with the next message.
        started.delete(told.sessionID)
        void hook("compact", of(told.sessionID, {}))
      }
      if (event.type === "session.deleted") {
        const session = told.info?.id || told.sessionID
        started.delete(session)
        void hook("session-end", of(session, { reason: "deleted" }))
      }
    },
  }
}
