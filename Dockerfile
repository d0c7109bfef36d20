FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:26-slim AS base
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY proto/gen proto/gen
COPY src src
USER node

FROM base AS core
EXPOSE 50051
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s CMD ["node", "src/check-health.ts"]
CMD ["node", "src/main.ts"]

FROM base AS gateway
COPY gateway gateway
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "gateway/main.ts"]
