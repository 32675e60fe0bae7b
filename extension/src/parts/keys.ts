/** Takes a key: notebooks have shortcuts of their own for many. */
export function take(event: KeyboardEvent): void {
  event.preventDefault();
  event.stopPropagation();
}
