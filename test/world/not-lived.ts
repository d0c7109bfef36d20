/**
 * Planted bugs that no life can find, by what the simulated world lacks. When something is added to the world, remove its
 * bugs from this list.
 */
const LACKS: Readonly<Record<string, readonly string[]>> = {
  'a process whose log goes to a terminal': ['the log on a terminal is laid out as it is'],
  'somebody who exports to a file': [
    'a formula in full width is not defused',
    'a line that ends within quotes is taken for a record of CSV',
    'half a record stays at the end of a file that is gone on with',
    'of two texts that a spreadsheet would run or not the cells are the same',
  ],
  'so many leads that an export goes on for as long as a stop': ['an export ends well when its core stops'],
  'more leads of a studio than a message of an export has': [
    'an export goes on with the next studio, whatever is left of the one before',
  ],
  'somebody who reads the log': [
    'nobody is told of an export whose reader has left',
    'why something is not ready is told once, and never again',
  ],
  'somebody who counts how often the store is looked at, or what is read of it': [
    'an export reads on for whoever takes nothing',
    'each who asks has the store looked at',
    'reads of leads take their history along',
  ],
  'TLS, and impostors': [
    'a gateway tells its token to whoever answers at the address of the core',
    'a gateway tells its password to whoever answers at the address of Redis',
  ],
  'a Redis Cluster': ['a command that was sent to a node of a Redis Cluster and got lost is sent again'],
  'somebody who writes to Redis by hand': [
    'a list in the place of a counter stays there, and keeps its key from being counted',
  ],
  'a restart with another quota': ['a higher limit lets in who was told to wait'],
  'several servers of MongoDB, and a failover': [
    'a write is answered when one server has it',
    'what a failover can take back is read',
  ],
  'a database of the release before': ['the rule of the release before is forgotten before its claims are made anew'],
  'what comes so far only through another fault': ['a word that nobody knows goes out as undefined'],
  'a studio whose document is full': ['a studio that has no room for an event is not suspended'],
  'somebody who takes claims from leads by hand': [
    'a lead that is renewed lets go only of the claims that it says it has',
  ],
  'a studio whose claims cannot be made anew': [
    'a studio whose claims cannot be made anew keeps those behind it waiting',
  ],
  'as many connections, each with requests that wait, as are more than may wait on all of them at once': [
    'any number of requests wait',
  ],
  'callers who go in one life by the thousand': ['connections that are gone are kept in mind'],
  'a clock that goes back': ['updatedAt is the time of the clock, wherever that went'],
  'a quiet moment for strangers at a core: it is looked at, and was not seen to be found': [
    'a connection goes on after a call without the token',
    'strangers keep the connections that they have',
  ],
  'a core that writes by a region that is no more': ['a lead does not claim the text of its contact'],
  'a studio with a thousand members': [
    'a studio may have one member and one source too many',
    'the room in a studio is looked for before the write',
  ],
};

/** What the world lacks, by the name of the bug that needs it. */
export const NOT_LIVED: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(LACKS).flatMap(([what, names]) => names.map((name) => [name, what])),
);
