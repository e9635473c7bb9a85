/** Why a server closes a socket. Spec: RFC 6455 7.4; Rulings E22, E25, E27. */

/** The server stops, or heard nothing for too long. */
export const GOING_AWAY = 1001;

/** Whoever this is may not be here, or not any more. */
export const POLICY_VIOLATION = 1008;

/** A frame was larger than the server takes. */
export const TOO_LARGE = 1009;

/** The server has too much to do, or this client read too slowly. */
export const TRY_AGAIN_LATER = 1013;
