// memoriter as a provider of memorybench, over the gateway's API for clients of mem0.
import type { IngestOptions, IngestResult, Provider, ProviderConfig, SearchOptions } from "../../types/provider"
import type { UnifiedSession } from "../../types/unified"

export class MemoriterProvider implements Provider {
    name = "memoriter"
    private address = ""
    private token = ""

    async initialize(config: ProviderConfig): Promise<void> {
        this.address = `${config.baseUrl ?? process.env.MEMORITER_URL ?? "http://127.0.0.1:8377"}/mem0`
        this.token = config.apiKey || (process.env.MEMORITER_TOKEN ?? "")
        await this.call("GET", "/v1/ping/")
    }

    async ingest(sessions: UnifiedSession[], options: IngestOptions): Promise<IngestResult> {
        for (const session of sessions) {
            const messages = session.messages.map((message) => ({
                role: message.role,
                content: message.timestamp ? `[${message.timestamp}] ${message.content}` : message.content,
            }))
            await this.call("POST", "/v3/memories/add/", {
                messages,
                user_id: options.containerTag,
                run_id: session.sessionId,
                metadata: options.metadata ?? {},
            })
        }
        return { documentIds: sessions.map((session) => session.sessionId) }
    }

    async awaitIndexing(): Promise<void> {
        // Everything is stored and indexed when `add` returns.
    }

    async search(query: string, options: SearchOptions): Promise<unknown[]> {
        const found = await this.call("POST", "/v3/memories/search/", {
            query,
            filters: { user_id: options.containerTag },
            top_k: options.limit ?? 10,
            threshold: options.threshold,
        })
        return found.results
    }

    async clear(containerTag: string): Promise<void> {
        await this.call("DELETE", `/v1/memories/?user_id=${encodeURIComponent(containerTag)}`)
    }

    private async call(method: string, path: string, body?: unknown): Promise<any> {
        const answer = await fetch(this.address + path, {
            method,
            headers: { authorization: `Token ${this.token}`, "content-type": "application/json" },
            body: body === undefined ? undefined : JSON.stringify(body),
        })
        if (!answer.ok) throw new Error(`memoriter answered ${answer.status}: ${await answer.text()}`)
        return answer.json()
    }
}
