FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# What runs at the end of `npm ci`.
COPY gateway/docs/reference-script.ts gateway/docs/
COPY gateway/docs/build/take-reference.ts gateway/docs/build/
RUN npm ci --omit=dev

# Either image holds the code of both processes: the operator's command knows both.
FROM node:26-slim AS base
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY proto/gen proto/gen
COPY common common
COPY src src
COPY gateway gateway
COPY operator operator
COPY conformance conformance
# npx would make files in this folder, which belongs to root so that no process can change what it runs.
RUN ln -s /app/operator/cli.ts /usr/local/bin/lead-intake

FROM base AS core
# Where the embedded database is unless DATABASE_URL names another.
RUN install -d -m 700 -o node -g node data
VOLUME /app/data
USER node
EXPOSE 50051
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s CMD ["node", "src/check-health.ts"]
CMD ["node", "src/main.ts"]

FROM base AS gateway
USER node
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s CMD ["node", "gateway/check-health.ts"]
CMD ["node", "gateway/main.ts"]
