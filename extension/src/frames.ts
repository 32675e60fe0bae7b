// When a view repaints: at most ten times a second, only while it is visible, always with the newest model.

/** What the scheduler needs from the browser; tests pass their own. */
export interface Clock {
  now(): number;
  after(ms: number, run: () => void): number;
  cancel(handle: number): void;
  frame(run: () => void): void;
}

export const browserClock: Clock = {
  now: () => performance.now(),
  after: (ms, run) => setTimeout(run, ms) as unknown as number,
  cancel: (handle) => clearTimeout(handle),
  frame: (run) => void requestAnimationFrame(run),
};

export const REPAINT_MS = 100;
let repaintMs = REPAINT_MS;

/** Makes all views of the page repaint less often than ten times a second, or restores that rate. */
export function setRepaintsPerSecond(most: number): void {
  repaintMs = Math.max(REPAINT_MS, 1000 / most);
}

/** Calls `paint` soon after `request`, however often that is called. */
export class FrameScheduler {
  #last = -Infinity;
  #waiting = false;
  #pause = 0;
  #timer = 0;
  #visible = true;
  #stopped = false;

  constructor(
    private readonly paint: () => void,
    private readonly clock: Clock = browserClock,
  ) {}

  /** Requests a repaint, which comes at least `pause` milliseconds after the last. */
  request(pause = repaintMs): void {
    if (this.#stopped || (this.#waiting && pause >= this.#pause)) return;
    this.clock.cancel(this.#timer);
    this.#waiting = true;
    this.#pause = pause;
    if (this.#visible) this.#start();
  }

  /** Sets whether the view is visible. A repaint requested while it was hidden follows when it is visible again. */
  setVisible(visible: boolean): void {
    if (visible === this.#visible) return;
    this.#visible = visible;
    this.clock.cancel(this.#timer);
    if (visible && this.#waiting) this.#start();
  }

  /** Stops repainting. */
  stop(): void {
    this.#stopped = true;
    this.clock.cancel(this.#timer);
  }

  #start(): void {
    const rest = this.#last + this.#pause - this.clock.now();
    if (rest > 0) this.#timer = this.clock.after(rest, () => this.clock.frame(() => this.#run()));
    else this.clock.frame(() => this.#run());
  }

  #run(): void {
    if (this.#stopped || !this.#visible || !this.#waiting) return;
    this.#waiting = false;
    this.#last = this.clock.now();
    this.paint();
  }
}
