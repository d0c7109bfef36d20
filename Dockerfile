# The image of the core (`node src/main.ts`), the gateway (`node gateway/main.ts`), the relay (`node relay/main.ts`) and the command line (`lead-intake …`).
# By its digest, so that everybody builds on the same one; for amd64 and arm64. `docker buildx imagetools inspect node:26-slim` prints that of a newer one.
ARG BASE_IMAGE=node:26-slim@sha256:c0753125a3789977aefe869cbebccf70e3cfd7ea84ca48547458f02e4f1d7146

FROM $BASE_IMAGE AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

# The packages of the clients, which the gateway hands out, and the pages of /docs. Of the packages of development it takes those that build them, in the
# versions of the lock file.
FROM dependencies AS packages
RUN npm install --no-save --omit=dev --ignore-scripts --save-prod \
  $(node -p "const { devDependencies } = require('./package.json'); \
    ['@bufbuild/buf', '@scalar/fastify-api-reference', '@types/node', 'fflate', 'github-slugger', 'google-proto-files', 'nanotar', 'shiki', \
      'smol-toml', 'typescript', 'vitepress'] \
      .map((name) => name + '@' + devDependencies[name]).join(' ')")
COPY tsconfig.json buf.yaml ./
COPY proto proto
COPY common common
COPY sdk sdk
COPY examples/recipes examples/recipes
RUN npm run build:packages
RUN node sdk/packages/print-image-sbom.ts > image.cdx.json
COPY CHANGELOG.md ./
COPY gateway gateway
RUN npm run build:docs

FROM $BASE_IMAGE
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY proto/gen proto/gen
COPY common common
COPY src src
COPY gateway gateway
COPY relay relay
COPY operator operator
COPY verify verify
COPY --from=packages /app/gateway/docs/site gateway/docs/site
COPY --from=packages /app/packages packages
COPY --from=packages /app/image.cdx.json ./
# A link, because npx would create files in this folder, which belongs to root so that no process can change its own code.
RUN ln -s /app/operator/cli.ts /usr/local/bin/lead-intake
# The folder of the embedded database, the default of DATABASE_URL.
RUN install -d -m 700 -o node -g node data
VOLUME /app/data
USER node
# Its commit is a label where the build knows it. Licence, vendor and source are for whoever distributes it to say (docs/how-to/releases.md).
LABEL org.opencontainers.image.title="Lead Intake" \
  org.opencontainers.image.description="Sends sales leads into one studio of a CRM and reads them back, so that the caller always knows whether a lead was written, and which one." \
  org.opencontainers.image.version="2.0.0"
EXPOSE 8080 50051
CMD ["lead-intake", "--help"]
