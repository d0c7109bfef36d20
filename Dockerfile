# One image for core and gateway: which one runs is the command.
FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:26-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY proto/gen proto/gen
COPY src src
COPY gateway gateway
USER node
CMD ["node", "src/main.ts"]
