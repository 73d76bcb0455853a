export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** The mail port. */
export interface Mailer {
  /** Resolves when the mail is accepted for delivery, which for a mail server is before it is delivered. */
  send(mail: Mail): Promise<void>;
  /** Waits a bounded time for what is still to be delivered. */
  close(): Promise<void>;
}

/** The mail server has been down for so long that no more mail can be kept in memory. */
export class MailQueueFullError extends Error {
  constructor() {
    super('the mail queue is full');
    this.name = 'MailQueueFullError';
  }
}
