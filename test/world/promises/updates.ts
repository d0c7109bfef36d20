import type { Life } from '../life.ts';

interface Sight {
  readonly begin: number;
  readonly end: number;
  readonly stage: string;
  readonly updatedAt: string;
}

/** A lead that is read shows the time of its last change: it never goes back, and no two stages have the same. */
export function brokenOfUpdates({ history }: Life): string[] {
  const sights = history.of('request').flatMap(({ answer, span }) => {
    if (answer?.status !== 200) return [];
    const { lead, leads = [lead] } = JSON.parse(answer.text);
    return leads.map((each: Sight & { id: string }) => ({ ...span, ...each }));
  });
  return [...Map.groupBy(sights, ({ id }) => id as string)].flatMap(([id, all]) => {
    const byBegin = (all as Sight[]).toSorted((a, b) => a.begin - b.begin);
    return byBegin.flatMap((later, index) =>
      byBegin.slice(0, index).flatMap((earlier) => {
        const isBack = earlier.end < later.begin && later.updatedAt < earlier.updatedAt;
        const isSame = later.updatedAt === earlier.updatedAt && later.stage !== earlier.stage;
        if (!isBack && !isSame) return [];
        const told = ({ stage, updatedAt }: Sight) => `${stage} since ${updatedAt}`;
        return [`${id} is seen ${told(earlier)}, and later ${told(later)}`];
      }),
    );
  });
}
