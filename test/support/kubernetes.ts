/** Builds the manifests of ops/kubernetes with kustomize, and reads them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { describeIf } from '../tools/servers.ts';

/** The program that builds a folder with a kustomization. */
const KUSTOMIZE = [
  ['kubectl', 'kustomize'],
  ['kustomize', 'build'],
].find(([program = '', command = '']) => spawnSync(program, [command, '--help']).status === 0);

/** The schema of the Kubernetes API, where .ci/install-kubernetes-tools writes it. */
const [SCHEMA = ''] = globSync('/usr/local/share/lead-intake/kubernetes-*.json');

/** Defines a suite that builds manifests. */
export function describeWithKustomize(name: string, body: () => void): void {
  describeIf(KUSTOMIZE !== undefined, name, 'install kubectl, or run `.ci/install-kubernetes-tools`', body);
}

/** Defines a suite that validates against the schema of the Kubernetes API. @param body gets the schema's path */
export function describeWithKubeconform(name: string, body: (schema: string) => void): void {
  const found = KUSTOMIZE !== undefined && existsSync(SCHEMA) && spawnSync('kubeconform', ['-v']).status === 0;
  describeIf(found, name, 'run `.ci/install-kubernetes-tools` as root', () => body(SCHEMA));
}

/** The parts of a pod's container that tests read. */
export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe: Probe;
  readonly startupProbe?: Probe;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

export interface Probe {
  readonly exec?: { readonly command: readonly string[] };
  readonly httpGet?: { readonly path: string; readonly port: string };
}

export interface Volume {
  readonly name: string;
  readonly secret?: { readonly secretName: string; readonly defaultMode: number };
  readonly emptyDir?: object;
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

export interface PodSpec {
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number; readonly fsGroup: number };
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [ContainerSpec];
  readonly volumes: readonly Volume[];
}

/** The parts of an object of the API that tests read. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: validated by the schema of Kubernetes.
  readonly spec?: any;
}

/** Builds a folder with a kustomization, and returns the input for `kubectl apply`. */
export function build(folder: string): string {
  const [program = '', command = ''] = KUSTOMIZE ?? [];
  return execFileSync(program, [command, folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export const parseManifests = (text: string): readonly Manifest[] =>
  parseAllDocuments(text).map((document) => document.toJS());

export const filterByKind = (manifests: readonly Manifest[], kind: string): readonly Manifest[] =>
  manifests.filter((manifest) => manifest.kind === kind);

export const findPod = (deployment: Manifest): PodSpec => deployment.spec.template.spec;

/** Returns the environment of a container. */
export function makeEnvironment({ env = [], envFrom }: ContainerSpec, manifests: readonly Manifest[]) {
  const maps = envFrom.map(({ configMapRef }) => {
    const map = filterByKind(manifests, 'ConfigMap').find(({ metadata }) => metadata.name === configMapRef.name);
    if (!map) throw new Error(`there is no ConfigMap ${configMapRef.name}`);
    return map.data ?? {};
  });
  return Object.assign({}, ...maps, Object.fromEntries(env.map(({ name, value }) => [name, value]))) as Record<
    string,
    string
  >;
}

/** The folders that can be applied unchanged. */
export const OVERLAYS: readonly string[] = ['sqlite', 'mongodb-redis'].map((name) =>
  join('ops/kubernetes/overlays', name),
);

/** Returns a bash function `kubectl` that only copies the files of secrets into a folder. */
export const kubectlThatKeeps = (folder: string) => `kubectl() {
  case "$1 $2 $3" in
    'apply --filename -') cat > /dev/null ;;
    'apply --filename '*) test -e "$3" ;;
    'config set-context --current') ;;
    'create secret generic')
      local name=$4 option file
      mkdir -p ${folder}/$name
      for option in "\${@:5}"; do
        [[ $option == --from-file=* ]] || continue
        file=\${option#--from-file=}
        if [[ $file == *=* ]]; then cp "\${file#*=}" "${folder}/$name/\${file%%=*}"; else cp "$file" ${folder}/$name; fi
      done ;;
    *) echo "unknown: $*"; return 1 ;;
  esac
}`;
