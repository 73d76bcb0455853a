import type { Mail } from '../mail/mail.ts';

/** The mails that identity and organizations send. A code stands alone on its line, easy to copy. */

export function confirmationLetter(to: string, username: string, code: string): Mail {
  return {
    to,
    subject: 'Confirm your Millrace account',
    text: `Hello ${username},\n\nyour confirmation code is\n\n${code}\n\nIt is good for 15 minutes. If you did not sign up, ignore this mail.\n`,
  };
}

export function alreadySignedUpLetter(to: string, username: string): Mail {
  return {
    to,
    subject: 'You already have a Millrace account',
    text: `Hello ${username},\n\nsomebody signed up with this email address, which belongs to your account "${username}" already.\nIf it was you, sign in, or reset your password if you forgot it. If not, ignore this mail: nothing has changed.\n`,
  };
}

export function passwordResetLetter(to: string, username: string, code: string): Mail {
  return {
    to,
    subject: 'Reset your Millrace password',
    text: `Hello ${username},\n\nthe code to set a new password is\n\n${code}\n\nIt is good for 15 minutes. If you did not ask for it, ignore this mail.\n`,
  };
}

export function passwordChangedLetter(to: string, username: string): Mail {
  return {
    to,
    subject: 'Your Millrace password was changed',
    text: `Hello ${username},\n\nthe password of your account was changed just now. If it was not you, reset it at once.\n`,
  };
}

export function addedLetter(to: string, username: string, organizationName: string): Mail {
  return {
    to,
    subject: `You were added to ${organizationName} on Millrace`,
    text: `Hello ${username},\n\nyou are now a member of the organization ${organizationName}.\n`,
  };
}

export function invitationLetter(
  to: string,
  username: string,
  organizationName: string,
  temporaryPassword: string,
): Mail {
  return {
    to,
    subject: `You are invited to ${organizationName} on Millrace`,
    text: `Hello ${username},\n\nan account was made for you in the organization ${organizationName}.\nSign in as ${username} with the temporary password\n\n${temporaryPassword}\n\nwithin 7 days; you will then choose your own.\n`,
  };
}
